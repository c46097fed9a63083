package locks

import (
	"log/slog"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
)

// A caller may be refused just before the manager is closed, and come to the line after it.
func TestNoLookBeginsAfterClose(t *testing.T) {
	t.Parallel()
	p := &locktest.Memory{}
	q := newLine(p, slog.New(slog.DiscardHandler))
	if err := q.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := q.join(nil, lock.Request{Key: "late", Region: "LOCKS"})
	select {
	case <-w.wake:
	default:
		t.Error("the caller is not woken")
	}
	q.leave(w)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running {
		t.Error("a look runs that nobody waits for")
	}
}
