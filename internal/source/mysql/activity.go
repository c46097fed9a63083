package mysql

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/wait"
)

// activity is what the server says of its open transactions.
type activity struct {
	now    time.Time
	oldest time.Time // zero when nothing is open
	// grain is by how much a statement may seem older than it is. A horizon that
	// did not allow for that would go back when one begins after it was read.
	grain time.Duration
	// hidden: the account may not read them. stale: others read them so often that
	// the server answers from its memory. foreign: innodb_trx does not know the
	// table's engine.
	hidden, stale, foreign bool
	// staleFor is for how long it has been stale.
	staleFor time.Duration
	// engine is one that innodb_trx does not know, and that tables behind a view
	// or a query may have; empty for none, and for a table.
	engine string
	// held: a prepared transaction without a session does not show when it began.
	held    bool
	cluster bool
	replica bool
	// behind is how far a replica is, negative where it has stopped; silent says
	// that this account may not know.
	behind time.Duration
	silent bool
}

// activityReader reads on a session what is open on its server.
type activityReader struct{ *session }

func (c activityReader) read(ctx context.Context) (activity, error) {
	v, err := c.variables(ctx)
	if err != nil {
		return activity{}, err
	}
	a := activity{cluster: v.cluster()}
	if a.engine, err = c.foreignEngine(ctx); err != nil {
		return activity{}, err
	}
	if err := c.snapshot(ctx); err != nil {
		return activity{}, err
	}
	err = c.readOpen(ctx, &a)
	return a, errors.Join(err, c.exec(ctx, "end the snapshot", "COMMIT"), c.replication(ctx, &a, v.readOnly()))
}

func (c activityReader) readOpen(ctx context.Context, a *activity) error {
	seen, err := c.statements(ctx)
	if err != nil {
		return err
	}
	a.now, a.grain, a.replica = seen.now, seen.grain, a.replica || seen.replica
	open, err := c.transactions(ctx)
	a.hidden, a.stale = errors.Is(err, errHidden), errors.Is(err, errStale)
	if a.hidden || a.stale {
		return nil
	}
	if err != nil {
		return err
	}
	writing, err := mayWrite(seen, open,
		func() (processes, error) { return c.processes(ctx) },
		func() ([]transaction, error) { return c.transactions(ctx) })
	if err != nil {
		return err
	}
	for _, s := range writing {
		a.open(s.started)
	}
	for _, t := range open {
		if t.writes && t.thread != noThread {
			a.open(t.started)
		}
	}
	if writes(open, noThread) {
		left, err := c.prepared(ctx)
		a.held = a.held || left
		return err
	}
	return nil
}

// open adds something that began at that instant; an unreadable one holds.
func (a *activity) open(t time.Time) {
	switch {
	case t.IsZero():
		a.held = true
	case a.oldest.IsZero() || t.Before(a.oldest):
		a.oldest = t
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if !wait.For(ctx, d) {
		return source.Ended(ctx, "read open transactions")
	}
	return nil
}

func codeOf(err error) string {
	var f *observer.Fault
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

// instant reads "2026-03-29 01:30:00.5" in UTC; it is zero for what is none.
func instant(text []byte) time.Time {
	t, err := time.Parse(secondLayout, string(text)) // A fraction is read as well.
	if err != nil {
		return time.Time{}
	}
	return t
}
