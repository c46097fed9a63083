package mysql

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// activity is what the server says of its open transactions.
type activity struct {
	identity string
	now      time.Time
	oldest   time.Time // zero when nothing is open
	// certain is likewise of what has a transaction. The rest holds the mark where it
	// is, and does not take it back: a thread that is just getting a statement, and a
	// report that ends between two looks, seem to have been open for long.
	certain time.Time
	// grain is by how much a statement may seem older than it is. A horizon that
	// did not allow for that would go back when one begins after it was read.
	grain time.Duration
	// behind is how far a replica is.
	behind  time.Duration
	replica bool
	// inexact: the horizon is the clock less the overlap. held: the mark stays.
	inexact, held bool
	// stale: the server answered from its memory, see [Source.activity].
	stale bool
	// warnings say why, and what would make it exact.
	warnings []string
}

// fallBack is for everything that may commit rows unseen.
func (a *activity) fallBack(why string) {
	a.inexact, a.warnings = true, append(a.warnings, why)
}

// hold is for what was open without a word on since when.
func (a *activity) hold(why string) {
	a.held, a.warnings = true, append(a.warnings, why)
}

// activity reads what is open on the server.
func (c *session) activity(ctx context.Context) (activity, error) {
	if err := c.snapshot(ctx); err != nil {
		return activity{}, err
	}
	s, err := c.freshState(ctx)
	if err = errors.Join(err, c.exec(ctx, "end the snapshot", "COMMIT")); err != nil {
		return activity{}, err
	}
	c.conn.connector.era.Saw(s.settings.identity())
	a := activity{identity: s.settings.identity(), now: s.now, grain: s.grain, replica: s.replica}
	if s.settings.cluster() {
		a.fallBack("Other servers of a cluster write too, and their transactions cannot be seen here: the horizon is the clock less the overlap.")
	}
	if s.engine != "" {
		a.fallBack("The server has the engine " + s.engine + ", which does not show its transactions: the horizon is the clock less the overlap.")
	}
	switch {
	case c.conn.blind:
		a.fallBack("Transactions of other accounts are hidden, so the horizon is the clock less the overlap. GRANT PROCESS ON *.* to the account that reads.")
	case !s.fresh:
		a.stale, a.warnings = true, append(a.warnings, "Something asks for innodb_trx more than ten times a second, or too many nodes do, so the server does not show new transactions; the low-water mark does not move until it does.")
	default:
		a.count(s.running, s.open)
		if writes(s.open, noThread) {
			err = c.prepared(ctx, &a)
		}
	}
	return a, errors.Join(err, c.replication(ctx, &a, s.settings.readOnly()))
}

// count counts the transactions, and the statements that may write: all but those of
// transactions that only read. A transaction shows up with its first touch of a table,
// before which its statement may have waited for long.
func (a *activity) count(statements []running, open []transaction) {
	for _, s := range statements {
		switch {
		case writes(open, s.thread):
			a.open(s.started, true)
		case !slices.ContainsFunc(open, func(t transaction) bool { return t.thread == s.thread }):
			a.open(s.started, false)
		}
	}
	for _, t := range open {
		if t.writes && t.thread != noThread {
			a.open(t.started, true)
		}
	}
}

func writes(open []transaction, thread string) bool {
	return slices.ContainsFunc(open, func(t transaction) bool { return t.thread == thread && t.writes })
}

// open adds something that began at that instant; an unreadable one holds.
func (a *activity) open(t time.Time, certain bool) {
	if t.IsZero() {
		a.hold("The server does not say when a transaction or statement began; the low-water mark does not move until that ends.")
		return
	}
	a.oldest = source.Earlier(t, a.oldest)
	if certain {
		a.certain = source.Earlier(t, a.certain)
	}
}

func codeOf(err error) string {
	if f, ok := errors.AsType[*observer.Fault](err); ok {
		return f.Code
	}
	return ""
}

// instant reads "2026-03-29 01:30:00.5" in UTC; it is zero for what is none.
func instant(text []byte) time.Time {
	t, _ := time.Parse(time.DateTime, string(text)) // A fraction is read as well.
	return t
}
