package liveness

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// freer is a presence that frees whatever it is told to.
type freer struct {
	Presence
	freed []string
}

func (f *freer) kind() string { return BySession }

func (f *freer) free(_ context.Context, l lease) (bool, error) {
	f.freed = append(f.freed, l.term)
	return true, nil
}

// TestManyLocksOfTheDeadLeaveThePollersTheirLooks has more to free than there is time for.
func TestManyLocksOfTheDeadLeaveThePollersTheirLooks(t *testing.T) {
	t.Parallel()
	leases := []lease{{term: "poller 1"}, {term: "poller 2"}, {term: "general 1"}, {term: "general 2", shared: true}}
	dead := map[string]bool{}
	for _, l := range leases {
		dead[l.id()] = true
	}
	delete(dead, leases[0].id())
	leases[0].LockID = LockID{"orders", "DEFAULT"}
	for name, row := range map[string]struct {
		left time.Duration
		want string
	}{
		"no time is left": {-time.Second, "[poller 2]"},
		"there is time":   {time.Hour, "[poller 2 general 1 general 2]"},
	} {
		p := &freer{}
		m := New(p, Options{Logger: slog.New(slog.DiscardHandler)})
		locks := m.freeAll(t.Context(), leases, 2, dead, time.Now().Add(row.left))
		if fmt.Sprint(p.freed) != row.want {
			t.Errorf("%s: freed %v, want %s", name, p.freed, row.want)
		}
		if _, held := locks[leases[0].LockID]; len(locks) != 1 || !held {
			t.Errorf("%s: %v are still held", name, locks)
		}
	}
}
