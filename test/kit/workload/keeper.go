package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// keeper moves the stock, alone: it deletes rows and brings them back.
type keeper struct {
	*Writers
	random *rand.Rand
}

const (
	move = `UPDATE stock SET n = n + 1, status = $1 WHERE sku BETWEEN $2 AND $3`
	drop = `
		WITH d AS (DELETE FROM stock WHERE %s RETURNING sku, n)
		INSERT INTO ended SELECT sku, n + 1 FROM d ON CONFLICT (sku) DO UPDATE SET n = excluded.n`
	// Only a few may be missing at a time: of a table that empties itself, the
	// poller believes nothing.
	few     = `sku = $1 AND (SELECT count(*) FROM stock) > $2`
	restock = `
		WITH e AS (DELETE FROM ended WHERE sku IN (SELECT sku FROM ended ORDER BY sku LIMIT %s) RETURNING sku, n)
		INSERT INTO stock SELECT sku, n + 1, $1 FROM e`
)

// turn is one transaction.
func (k *keeper) turn(ctx context.Context) error {
	k.closed.Lock()
	defer k.closed.Unlock()
	status := fmt.Sprintf(Mark+"-k%d", k.random.IntN(1000))
	from := 1 + k.random.IntN(skus)
	s := step{move, []any{status, sku(from), sku(from + k.random.IntN(10))}}
	switch k.random.IntN(6) {
	case 0:
		s = step{fmt.Sprintf(drop, few), []any{sku(from), skus * 95 / 100}}
	case 1:
		s = step{fmt.Sprintf(restock, "2"), []any{status}}
	}
	rollBack := k.random.IntN(10) == 0
	lag := time.Duration(k.random.Int64N(int64(150 * time.Millisecond)))
	return k.transaction(ctx, rollBack, func(whole context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(whole, s.text, s.args...)
		pause(ctx, lag)
		return err
	})
}

// Empty deletes all of the stock in one transaction. The keeper rests until the
// caller calls refill, which brings all rows back; it must be called, beside an
// error too. Its own error is that of a server that stays away.
func (w *Writers) Empty(ctx context.Context) (refill func() error, err error) {
	w.closed.Lock()
	refill = func() error {
		defer w.closed.Unlock()
		var err error
		for end := time.Now().Add(time.Minute); time.Now().Before(end); pause(context.WithoutCancel(ctx), 200*time.Millisecond) {
			if err = w.execute(ctx, fmt.Sprintf(restock, "ALL"), Mark+"-refilled"); err == nil {
				return nil
			}
		}
		return fmt.Errorf("refill the stock: %w", err)
	}
	if err := w.execute(ctx, fmt.Sprintf(drop, "TRUE")); err != nil {
		return refill, fmt.Errorf("empty the stock: %w", err)
	}
	return refill, nil
}

// execute is a transaction of one statement.
func (w *Writers) execute(ctx context.Context, statement string, args ...any) error {
	return w.transaction(ctx, false, func(whole context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(whole, statement, args...)
		return err
	})
}

func sku(n int) string { return fmt.Sprintf(Mark+"-sku-%04d", n) }
