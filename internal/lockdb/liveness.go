package lockdb

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// livenessTimeout bounds one look, one attempt to be seen, and the farewell.
// After the server was restarted, a node has time for two attempts before
// anybody judges it.
const livenessTimeout = 2 * time.Second

// LivenessOptions say how closely nodes watch each other. Durations of 0 mean
// the defaults.
type LivenessOptions struct {
	// Every is the time between two looks. 0 means 250 ms: the death of a node
	// is found out so much later than Absence, at most.
	Every time.Duration
	// Absence is how long a node must have been absent, in every look, to count
	// as dead. 0 means 1 s.
	Absence time.Duration
	// Age is how old our own session must be before it judges: after a restart
	// of the server all sessions are gone, and come back one after the other.
	// 0 means 5 s. It plays no part on SQLite.
	Age time.Duration
	// Patience is how long a node that cannot be seen gives signs of life
	// instead, before it lets its leases live by their TTL alone. 0 means 30 s.
	Patience time.Duration
	// SignOfLife renews all leases of this node at once and does not wait; see
	// [lock.Keeper]. Nil does nothing.
	SignOfLife func()
	// Logger is required. Beat is told that the loop is alive; nil is told
	// nothing.
	Logger *slog.Logger
	Beat   func(loop string, within time.Duration)
}

func (o *LivenessOptions) setDefaults() {
	for field, value := range map[*time.Duration]time.Duration{
		&o.Every: 250 * time.Millisecond, &o.Absence: absence, &o.Age: 5 * time.Second, &o.Patience: 30 * time.Second,
	} {
		if *field == 0 {
			*field = value
		}
	}
	if o.SignOfLife == nil {
		o.SignOfLife = func() {}
	}
	if o.Beat == nil {
		o.Beat = func(string, time.Duration) {}
	}
}

// Liveness shows that this process lives, watches the others, and takes the
// leases of the dead from them, so that nobody waits for their TTL. What makes
// that safe is the fence: a node that was judged wrongly loses its lease, and
// its commits are refused.
//
//	           ┌────────── error ───────────┐
//	           v                            │
//	start ─> appear ─ seen by others ─> look, judge, free ─┐
//	           │ ^                          ^              │
//	           │ └─ again, with signs of    └── every ─────┘
//	           │    life in between
//	           └─ a pooler in transaction mode: switched off for good
type Liveness struct {
	db   *DB
	opts LivenessOptions
	p    presence
	news news

	judge    judge
	appeared time.Time // when others could see us again
	lost     time.Time // when they could not any more
	told     bool      // that we cannot be seen
	// judged says that rows of ours may let others judge us: while they cannot
	// see us, signs of life have to stand in.
	judged   bool
	short    int  // sessions in a row that did not last
	relooked bool // at the catalogue, and no look has succeeded since
	settled  chan struct{}
	settle   func()

	cancel context.CancelFunc
	work   sync.WaitGroup
	mu     sync.Mutex
	ended  bool
}

// NewLiveness returns the liveness of this process; [Options].BootID is
// required. It does nothing until [Liveness.Start].
func (db *DB) NewLiveness(o LivenessOptions) *Liveness {
	o.setDefaults()
	l := &Liveness{db: db, opts: o, p: db.newPresence(), cancel: func() {}, settled: make(chan struct{})}
	l.settle = sync.OnceFunc(func() { close(l.settled) })
	l.judge = judge{absence: o.Absence, gap: 2 * (o.Every + o.Absence)}
	db.liveness = l
	return l
}

// Start begins to show this process and to watch the others, in the
// background. The schema must be up to date. After Stop it does nothing.
//
// The channel is closed when the first attempt has ended, well or badly, which
// takes a moment. Leases that are acquired before that are noted as ones whose
// holder nobody sees, until the next look.
func (l *Liveness) Start(ctx context.Context) (settled <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		l.settle()
		return l.settled
	}
	ctx, l.cancel = context.WithCancel(ctx)
	l.work.Go(func() { l.run(ctx) })
	return l.settled
}

// Stop ends it and gives everything back. On PostgreSQL, whoever still holds
// leases then counts as dead; beside SQLite those live by their TTL, as the file
// is gone. Stop it after they were released. It may be called twice, and before
// Start. The error is that of ctx, when something hangs in the kernel.
func (l *Liveness) Stop(ctx context.Context) error {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.cancel()
	done := make(chan struct{})
	go func() {
		l.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the liveness of this node did not end in time: %w", context.Cause(ctx))
	}
}

// Gone reports whether the node of that boot id is known to be dead.
func (l *Liveness) Gone(bootID string) bool { return l.news.isGone(bootID) }

// Freed returns a channel that is closed when the lock of the request may have
// become free, or another node was found dead. It is nil while nothing of the
// kind can be known. A lock of a foreign holder is not watched.
func (l *Liveness) Freed(r lock.Request) <-chan struct{} { return l.news.freed(r) }
