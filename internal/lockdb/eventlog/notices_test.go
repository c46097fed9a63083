package eventlog

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/wait"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// listener is a node that counts what it hears.
type listener struct {
	log   *Log
	heard chan struct{}
	done  chan struct{}
}

func listen(t *testing.T, url string) *listener {
	t.Helper()
	n := &listener{log: New(migrated(t, url), Options{Logger: slog.New(slog.DiscardHandler)}), heard: make(chan struct{}, 1000), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(n.done)
		n.log.Notices(ctx, func() { n.heard <- struct{}{} })
	}()
	t.Cleanup(func() { cancel(); <-n.done })
	return n
}

// hears waits for the next notice.
func (n *listener) hears(t *testing.T) {
	t.Helper()
	select {
	case <-n.heard:
	case <-n.done:
		t.Fatal("the node does not listen any more")
	case <-time.After(time.Minute):
		t.Fatal("nothing was heard for a minute")
	}
}

// TestNodesTellEachOtherOfEvents has one node announce a thousand commits: both hear of
// them, by far fewer notices.
func TestNodesTellEachOtherOfEvents(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	a, b := listen(t, url), listen(t, url)
	a.hears(t) // That it listens.
	b.hears(t)
	began := time.Now()
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			for range 100 {
				a.log.Announce()
				time.Sleep(time.Millisecond)
			}
		})
	}
	a.hears(t)
	b.hears(t)
	callers.Wait()
	time.Sleep(3 * noticeEvery)
	if most := int(time.Since(began)/noticeEvery) + 1; len(b.heard) > most {
		t.Errorf("%d notices, want at most %d", len(b.heard), most)
	}
}

// TestASessionThatListensIsOpenedAgain has the server end it.
func TestASessionThatListensIsOpenedAgain(t *testing.T) {
	t.Parallel()
	n := listen(t, pgtest.New(t))
	n.hears(t)
	if _, err := n.log.db.Main.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '% notices'
		AND datname = current_database()`); err != nil {
		t.Fatal(err)
	}
	n.hears(t) // It listens again, and looks once.
	n.log.Announce()
	n.hears(t)
}

// TestNobodyListensWhereSessionsAreShared: a notice would reach another client.
func TestNobodyListensWhereSessionsAreShared(t *testing.T) {
	t.Parallel()
	pooled := bouncertest.StandIn(t, pgtest.New(t))
	for name, url := range map[string]string{"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "c.db"), "a pooler": pooled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := New(migrated(t, url), Options{Logger: slog.New(slog.DiscardHandler)})
			heard := func() { t.Error("something was heard") }
			if log.db.Backend() == "sqlite" {
				log.Notices(t.Context(), heard) // It returns at once.
			} else if err := log.listen(t.Context(), heard, wait.NewBackoff(time.Second, time.Minute)); err != nil {
				t.Errorf("it tries again to listen: %v", err)
			}
		})
	}
}
