package lockdb_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
)

// inLine returns the request of a caller that waits for the lock.
func inLine(key, node string) lock.Request {
	r := request(key)
	r.Mode, r.Node, r.Place.ID = lock.Exclusive, node, uuid.NewString()
	return r
}

// TestOneWhoWaitedBeforeTheClockWentBack has a process die in line, and the database's clock
// go back by an hour.
func TestOneWhoWaitedBeforeTheClockWentBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		l, gone := general(db), inLine("export", "gone")
		if _, err := l.Wait(t.Context(), []lock.Request{gone}); err != nil {
			t.Fatal(err)
		}
		other := inLine("export", "other")
		if _, err := l.Acquire(t.Context(), other); !errors.Is(err, lock.ErrHeld) {
			t.Fatalf("%v: one who waits was passed", err)
		}
		exec(t.Context(), t, url, map[string]string{
			"sqlite":   `UPDATE obs_wait SET touched_at = strftime('%Y-%m-%d %H:%M:%f000', 'now', '+1 hour') WHERE waiter = ?1`,
			"postgres": `UPDATE obs_wait SET touched_at = clock_timestamp() + interval '1 hour' WHERE waiter = $1`,
		}, gone.Place.ID)
		turns, err := l.Wait(t.Context(), []lock.Request{other})
		if err != nil || !turns[0].Come {
			t.Errorf("the dead one is in the way: %+v, %v", turns, err)
		}
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			r := other
			r.Mode = mode
			g, err := l.Acquire(t.Context(), r)
			if err != nil {
				t.Fatalf("%s: %v", mode, err)
			}
			if err := l.Release(t.Context(), g); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestTicketsAreInTheOrderOfTheCallers has many callers of one process noted by one look.
func TestTicketsAreInTheOrderOfTheCallers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		callers := make([]lock.Request, 20)
		for i := range callers {
			callers[i] = inLine("export", "node-a")
		}
		turns, err := general(db).Wait(t.Context(), callers)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(turns, func(a, b lock.Turn) int { return int(a.Ticket - b.Ticket) }) {
			t.Errorf("the tickets are not in order: %v", turns)
		}
	})
}
