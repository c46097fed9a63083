package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// clerks write orders and tasks side by side.
	clerks = 4
	// late is how long the slowest transaction stays open after it has taken
	// the time that its rows carry.
	late = 1500 * time.Millisecond
	// bulk is the most rows with one timestamp, several chunks of a poll.
	bulk = 400
)

// Writers write into the tables until they are stopped.
type Writers struct {
	pool   *pgxpool.Pool
	cancel context.CancelFunc
	work   sync.WaitGroup
	rest   time.Duration
	// closed is held by whoever works on the stock.
	closed sync.Mutex

	committed, rolledBack, failed atomic.Int64
}

// Tally is what the writers did. Failed are transactions that met a fault of
// the server; some of them may have committed.
type Tally struct{ Committed, RolledBack, Failed int64 }

// Open starts writers whose choices follow from the seed, for a source with that
// many shelves. Each rests that long
// between two transactions. Faults of the server only delay them.
func Open(ctx context.Context, url string, seed uint64, shelves int, rest time.Duration) (*Writers, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	w := &Writers{pool: pool, rest: rest}
	ctx, w.cancel = context.WithCancel(ctx)
	for i := range clerks {
		c := &clerk{Writers: w, name: fmt.Sprintf(Mark+"-%c", 'a'+i), random: rand.New(rand.NewPCG(seed, uint64(i)))} //nolint:gosec // A test's choices.
		w.work.Go(func() { w.repeat(ctx, c.serve) })
	}
	k := &keeper{Writers: w, random: rand.New(rand.NewPCG(seed, clerks))} //nolint:gosec // As above.
	w.work.Go(func() { w.repeat(ctx, k.turn) })
	if shelves > 0 {
		p := &porter{Writers: w, random: rand.New(rand.NewPCG(seed, clerks+1)), shelves: shelves} //nolint:gosec // As above.
		w.work.Go(func() { w.repeat(ctx, p.turn) })
	}
	return w, nil
}

// Close stops the writers and waits for them.
func (w *Writers) Close() Tally {
	w.cancel()
	w.work.Wait()
	w.pool.Close()
	return Tally{w.committed.Load(), w.rolledBack.Load(), w.failed.Load()}
}

func (w *Writers) repeat(ctx context.Context, work func(context.Context) error) {
	for ctx.Err() == nil {
		if err := work(ctx); err != nil {
			w.failed.Add(1)
			pause(ctx, 200*time.Millisecond)
		}
		pause(ctx, w.rest)
	}
}

// transaction runs one and ends it as asked. It is not given up when the writers
// stop: whoever looks at the source then is to see all that was ever committed.
func (w *Writers) transaction(ctx context.Context, rollBack bool, work func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := work(ctx, tx); err != nil {
		return err
	}
	if rollBack {
		w.rolledBack.Add(1)
		return tx.Rollback(ctx)
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	w.committed.Add(1)
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
