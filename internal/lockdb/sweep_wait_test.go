package lockdb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
)

// TestStepThatMeetsAnotherTransaction has a step wait for a transaction that has
// locked the row of its sweep, or of its cursor. Only a sweep that was cancelled
// meanwhile refuses it; and it keeps no node from the lease.
func TestStepThatMeetsAnotherTransaction(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		other string
		// undone says that the other rolls back.
		undone, refused bool
	}{
		"cancelled":     {`UPDATE obs_sweep SET state = 'cancelled'`, false, true},
		"not cancelled": {`UPDATE obs_sweep SET state = 'cancelled'`, true, false},
		"touched":       {`UPDATE obs_sweep SET updated_at = clock_timestamp()`, false, false},
		"turn noted":    {`UPDATE obs_cursor SET last_error = 'x'`, false, false},
		"paused":        {`UPDATE obs_cursor SET version = version + 1`, false, true},
	} {
		for _, n := range sizes {
			if n >= 2000 && name != "cancelled" && name != "turn noted" {
				continue // COPY is in a transaction of statements; these two wait for each of both rows.
			}
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				t.Parallel()
				url := newPostgres(t)
				db := quiet(t, url, patiently)
				g := acquire(t, db, "order-observer-poll")
				s := db.Store(g)
				c, free := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2)), cursorOf(t, s, "free")
				id := startSweep(t, db, "orders", observer.SweepBackfill).ID
				other, _ := raw(t, url)
				tx, err := other.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.ExecContext(t.Context(), tc.other); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() {
					_, err := s.Commit(t.Context(), step(c, n, id, "2021"))
					done <- err
				}()
				waitFor(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
				if r, err := db.Leases().Renew(t.Context(), []lock.Grant{g}); err != nil || r[0] != lock.Renewed {
					t.Errorf("renewal beside: %v, %v", r, err)
				}
				if name == "cancelled" || name == "not cancelled" {
					brief, cancel := context.WithTimeout(t.Context(), soon)
					defer cancel()
					if _, err := s.Commit(brief, chunk(free, 1)); err != nil {
						t.Errorf("the neighbour's commit: %v", err)
					}
				}
				end := tx.Commit
				if tc.undone {
					end = tx.Rollback
				}
				if err := end(); err != nil {
					t.Fatal(err)
				}
				err = <-done
				if errors.Is(err, observer.ErrConflict) != tc.refused || err != nil && !tc.refused {
					t.Fatalf("the step: %v", err)
				}
				want := map[bool]int{false: n}[tc.refused]
				if got := count(t, url, `SELECT sum(row_count) FROM obs_sweep`); got != want {
					t.Errorf("the sweep counts %d rows, want %d", got, want)
				}
				if got := count(t, url, `SELECT count(*) FROM obs_event WHERE stream = 'orders'`); got != 2+want {
					t.Errorf("%d events, want %d", got, 2+want)
				}
			})
		}
	}
}
