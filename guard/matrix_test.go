package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/guard"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/lockstest"
)

// matrixSeed is that of the random tests of a run.
func matrixSeed(t *testing.T) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	t.Logf("RAPID_SEED=%d", seed)
	return seed
}

// process handles one delivery of an event, at one of the consumers.
type process func(ctx context.Context, eventID string) error

// forgetful has seen nothing, whatever it is told.
type forgetful struct{}

func (forgetful) Has(context.Context, string) (bool, error)        { return false, nil }
func (forgetful) Add(context.Context, string, time.Duration) error { return nil }

// TestMatrix delivers each event three times, to four consumers in any order. A consumer that
// looks first and then writes does some of them twice; with any one of the layers it does not.
func TestMatrix(t *testing.T) {
	t.Parallel()
	seed := matrixSeed(t)
	guarded := func(shared bool, seen guard.Seen) func(t *testing.T, url string) []process {
		return func(t *testing.T, url string) (all []process) {
			var memory lockstest.Memory
			for range consumers {
				o := guard.Options{Consumer: "payments", DB: openDB(t, url), Seen: seen, Wait: time.Minute}
				if shared {
					o.Locks = manager(t, &memory, "a")
				}
				g := open(t, o)
				all = append(all, func(ctx context.Context, id string) error {
					_, err := g.Do(ctx, "order-"+id, id, func(ctx context.Context, tx guard.Tx) error { return slowly(ctx, tx.SQL, id) })
					return err
				})
			}
			return all
		}
	}
	for name, c := range map[string]struct {
		open    func(t *testing.T, url string) []process
		doubles bool
	}{
		"no layer":                {naive(false, false), true},
		"the lock alone":          {naive(true, false), false},
		"the constraint alone":    {naive(false, true), false},
		"all":                     {guarded(true, &remembering{ids: make(map[string]bool)}), false},
		"a store that lies":       {guarded(false, nil), false},
		"nothing is remembered":   {guarded(true, forgetful{}), false},
		"both lie":                {guarded(false, forgetful{}), false},
		"a store that lies, seen": {guarded(false, &remembering{ids: make(map[string]bool)}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			deliver(t, seed, c.open(t, url))
			var events, most int
			err := openDB(t, url).QueryRowContext(t.Context(), "SELECT count(*), max(n) FROM (SELECT event_id, count(*) AS n FROM effects GROUP BY event_id) AS e").Scan(&events, &most)
			if err != nil || events != deliveries/3 || (most > 1) != c.doubles {
				t.Errorf("%d events, the most often done one %d times, doubles expected %t, %v", events, most, c.doubles, err)
			}
		})
	}
}

const consumers, deliveries = 4, 90

// deliver lets the consumers process all deliveries. One that is refused is delivered again.
func deliver(t *testing.T, seed uint64, all []process) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // Random tests are to be repeated.
	bus := make(chan string, deliveries)
	for _, event := range random.Perm(deliveries / 3) {
		for range 3 { // They are neighbours, so that several consumers have them at a time.
			bus <- fmt.Sprint(event)
		}
	}
	close(bus)
	var work sync.WaitGroup
	for _, p := range all {
		work.Go(func() {
			for id := range bus {
				for p(t.Context(), id) != nil {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	work.Wait()
}

// slowly writes the effect of an event after a while.
func slowly(ctx context.Context, tx *sql.Tx, id string) error {
	time.Sleep(rand.N(5 * time.Millisecond))
	_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES ($1, 'a')", id)
	return err
}

var errRepeated = errors.New("it was done before")

// naive are consumers as many are written: look whether the event was done, do it, note it. With
// the constraint, its conflict rolls back; with the lock, one does so at a time.
func naive(locked, constrained bool) func(t *testing.T, url string) []process {
	return func(t *testing.T, url string) (all []process) {
		var memory lockstest.Memory
		for range consumers {
			db, m := openDB(t, url), manager(t, &memory, "a")
			once := func(ctx context.Context, id string) error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				var done bool
				if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM effects WHERE event_id = $1)", id).Scan(&done); err != nil || done {
					return err
				}
				if err := slowly(ctx, tx, id); err != nil {
					return err
				}
				if constrained {
					result, err := tx.ExecContext(ctx, "INSERT INTO obs_inbox VALUES ('naive', $1, '', 0) ON CONFLICT (consumer, event_id) DO NOTHING", id)
					if err != nil {
						return err
					}
					if n, err := result.RowsAffected(); err != nil || n == 0 {
						return errors.Join(err, errRepeated)
					}
				}
				return tx.Commit()
			}
			if !locked {
				all = append(all, once)
				continue
			}
			all = append(all, func(ctx context.Context, id string) error {
				return m.Do(ctx, locks.Descriptor{Subject: "order", Predicate: "processing", Resources: []string{id}}, func(ctx context.Context, _ *locks.Lease) error {
					return once(ctx, id)
				}, locks.Within(time.Minute))
			})
		}
		return all
	}
}

// remembering is a Seen of one process.
type remembering struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (r *remembering) Has(_ context.Context, id string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[id], nil
}

func (r *remembering) Add(_ context.Context, id string, _ time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[id] = true
	return nil
}
