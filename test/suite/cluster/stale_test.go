package cluster_test

import (
	"context"
	"errors"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// TestStaleCommitIsRefused holds the first commit of a node back until its
// lease has ended and another node has polled the same rows: what a long pause
// does to a process, on each database.
func TestStaleCommitIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		w := openWarehouse(t)
		committing, release := make(chan struct{}), make(chan struct{})
		slow := w.jobs(t)[1]
		inner := slow.observers
		slow.observers = func(n *node) []schedule.Observer {
			p, ok := inner(n)[0].(polls)
			if !ok {
				t.Fatal("not the real poll")
			}
			return []schedule.Observer{sleeper{p, committing, release}}
		}
		a := join(t, m, "a", slow)
		received(t, committing, "the first commit of a")
		m.exec(t, map[string]string{
			"sqlite":   `UPDATE int_lock SET created_date = '2000-01-01 00:00:00.000000' WHERE lock_key = 'order-observer-poll'`,
			"postgres": `UPDATE int_lock SET created_date = '2000-01-01' WHERE lock_key = 'order-observer-poll'`,
		}[m.dialect])
		join(t, m, "b", w.jobs(t)[1])
		eventually(t, func() error {
			byB := func(p polled) bool { return p.node == "b" && p.outcome == string(turn.OK) }
			if polls, err := m.polls(t); err != nil || len(selected(polls, byB)) == 0 {
				return errors.Join(err, errNothingYet)
			}
			return nil
		})
		close(release)
		eventually(t, func() error {
			if a.count(t, "observerd_stale_commits_refused_total", "") == 0 {
				return errNothingYet
			}
			return nil
		})
		log, err := m.logged(t)
		if err := errors.Join(err, disorder(log)); err != nil {
			t.Error(err)
		}
		if len(log) == 0 {
			t.Error("b has found nothing: the test proves nothing")
		}
	})
}

// sleeper is a poll that falls asleep before its first commit.
type sleeper struct {
	polls
	committing, release chan struct{}
}

// Poll implements schedule.Observer.
func (s sleeper) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	return s.observer.Poll(ctx, s.source, drowsy{s.node.db.Store(g), s})
}

type drowsy struct {
	observer.Store
	sleeper sleeper
}

// Commit implements observer.Store.
func (d drowsy) Commit(ctx context.Context, ch observer.Chunk) (observer.Cursor, error) {
	select {
	case d.sleeper.committing <- struct{}{}:
		<-d.sleeper.release
	case <-d.sleeper.release:
	}
	return d.Store.Commit(ctx, ch)
}
