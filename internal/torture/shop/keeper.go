package shop

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
	// Only a few may be missing at a time: of a table that empties itself, the
	// poller believes nothing.
	drop = `
		WITH d AS (DELETE FROM stock WHERE sku = $1 AND (SELECT count(*) FROM stock) > $2 RETURNING sku, n)
		INSERT INTO ended SELECT sku, n + 1 FROM d ON CONFLICT (sku) DO UPDATE SET n = excluded.n`
	restock = `
		WITH e AS (DELETE FROM ended WHERE sku IN (SELECT sku FROM ended ORDER BY sku LIMIT 2) RETURNING sku, n)
		INSERT INTO stock SELECT sku, n + 1, $1 FROM e`
)

// turn is one transaction.
func (k *keeper) turn(ctx context.Context) error {
	status := fmt.Sprintf("k%d", k.random.IntN(1000))
	from := 1 + k.random.IntN(skus)
	s := step{move, []any{status, sku(from), sku(from + k.random.IntN(10))}}
	switch k.random.IntN(6) {
	case 0:
		s = step{drop, []any{sku(from), skus * 95 / 100}}
	case 1:
		s = step{restock, []any{status}}
	}
	rollBack := k.random.IntN(10) == 0
	lag := time.Duration(k.random.Int64N(int64(150 * time.Millisecond)))
	return k.transaction(ctx, rollBack, func(whole context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(whole, s.text, s.args...)
		pause(ctx, lag)
		return err
	})
}

func sku(n int) string { return fmt.Sprintf("sku-%04d", n) }
