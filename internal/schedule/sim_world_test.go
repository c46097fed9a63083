package schedule_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/test/kit/simtest"
)

// simWorld is a cluster, its database, and the rules that hold whatever fails.
type simWorld struct {
	tally   *simtest.Tally
	journal *simtest.Journal
	db      *memory
	clock   *simtest.Clock // of the database
	work    sync.WaitGroup
	// unreached is when a node last could not reach a source, by the clock of the nodes. It is
	// guarded as db is.
	unreached time.Time

	mu    sync.Mutex
	wrong string
	nodes []*simNode // alive
	// owners are the holders of all terms; stolen are the terms that ended
	// before their time, because the database's clock jumped or somebody took
	// the holder for dead.
	owners map[string]*simNode
	stolen map[string]bool
	held   map[string]string // the term that has each key, until it is released
	polls  map[*simPoll]bool // under way
	// committed is the term of each stream's last commit.
	committed map[string]string
	// absurd are the turns and streams whose last tick lay more than an
	// interval ahead at some time, because a clock had jumped back: it may be
	// ignored.
	absurd map[string]bool
}

func newSimWorld(tally *simtest.Tally) *simWorld {
	w := &simWorld{
		tally: tally, journal: simtest.NewJournal(), db: newMemory(), clock: simtest.NewClock(),
		owners: make(map[string]*simNode), stolen: make(map[string]bool),
		polls: make(map[*simPoll]bool), held: make(map[string]string),
		absurd: make(map[string]bool), committed: make(map[string]string),
	}
	w.db.locks.Clock = w.clock.Now
	return w
}

func (w *simWorld) broken(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.brokenLocked(format, args...)
}

func (w *simWorld) brokenLocked(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.journal.Close(w.wrong)
	}
}

func (w *simWorld) verdict() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong
}

// jump moves the database's clock. Ahead, it ends leases before their time; far
// back, it makes them free.
func (w *simWorld) jump(d time.Duration) {
	before := w.grants()
	w.slew(d)
	after := w.grants()
	w.mu.Lock()
	for term := range w.owners {
		w.stolen[term] = w.stolen[term] || d > 0 || before[term] && !after[term]
	}
	w.mu.Unlock()
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	for typ, t := range w.db.turns {
		w.forgive(typ, t.At)
	}
	for id, s := range w.db.streams {
		w.forgive(id, s.At)
	}
}

// grants are the terms of the locks that nobody may take now.
func (w *simWorld) grants() map[string]bool {
	terms := make(map[string]bool)
	for _, typ := range types {
		if g, held := w.db.locks.Holder(request(typ, "")); held {
			terms[g.Term] = true
		}
	}
	return terms
}

// slew moves the database's clock by less than the margin of a lease.
func (w *simWorld) slew(d time.Duration) {
	w.journal.Note("database", fmt.Sprintf("clock moves by %s to %s", d, w.clock.Now().Add(d).Format(time.TimeOnly)))
	w.clock.Jump(d)
	w.db.set(func(m *memory) { m.skew += d })
}

// bury ends the leases of a node that is dead, or taken for dead.
func (w *simWorld) bury(n *simNode) {
	for _, typ := range types {
		g, held := w.db.locks.Holder(request(typ, ""))
		if !held {
			continue
		}
		w.mu.Lock()
		theirs := w.owners[g.Term] == n
		w.stolen[g.Term] = w.stolen[g.Term] || theirs
		w.mu.Unlock()
		if theirs {
			w.db.locks.Expire(g)
		}
	}
}

// holder returns the living node that holds the type's lock; nil for none.
func (w *simWorld) holder(typ string) *simNode {
	g, held := w.db.locks.Holder(request(typ, ""))
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.owners[g.Term]; held && slices.Contains(w.nodes, n) {
		return n
	}
	return nil
}

func (w *simWorld) living() []*simNode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes)
}

// freed tells those who wait that a lock may have become free.
func (w *simWorld) freed() {
	for _, n := range w.living() {
		n.news.tell()
	}
}

func (w *simWorld) granted(n *simNode, g lock.Grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[g.Key] != "" {
		w.tally.Count("lease taken over")
	}
	w.owners[g.Term], w.held[g.Key] = n, g.Term
}

func (w *simWorld) released(g lock.Grant) {
	w.mu.Lock()
	w.held[g.Key] = ""
	w.mu.Unlock()
	w.freed()
}
