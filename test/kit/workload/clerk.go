package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// clerk writes orders and tasks. The rows of a transaction carry the instant at
// which it began, and appear when it ends, a little or much later.
type clerk struct {
	*Writers
	name   string
	random *rand.Rand
	next   int
}

// step is a statement with its arguments.
type step struct {
	text string
	args []any
}

// Rows that another clerk has locked are left out: clerks should not wait for
// each other's pauses.
const (
	take = `
		INSERT INTO orders
		SELECT $1 || '-' || lpad(i::text, 8, '0'), 1, '` + Mark + `-new', now() FROM generate_series($2::int, $3::int) i`
	amend = `
		UPDATE orders SET n = n + 1, status = $1, updated_at = now()
		 WHERE order_id IN (SELECT order_id FROM orders WHERE order_id BETWEEN $2 AND $3 ORDER BY order_id LIMIT 20 FOR UPDATE SKIP LOCKED)`
	work = `
		UPDATE tasks SET n = n + 1, status = $1, updated_at = now()
		 WHERE task_id IN (SELECT task_id FROM tasks WHERE task_id BETWEEN $2 AND $3 ORDER BY task_id LIMIT $4 FOR UPDATE SKIP LOCKED)`
)

// serve is one transaction.
func (c *clerk) serve(ctx context.Context) error {
	steps, rollBack := c.plan(), c.random.IntN(10) == 0
	lag := c.lag()
	return c.transaction(ctx, rollBack, func(whole context.Context, tx pgx.Tx) error {
		for _, s := range steps {
			if _, err := tx.Exec(whole, s.text, s.args...); err != nil {
				return err
			}
		}
		pause(ctx, lag)
		return nil
	})
}

// plan chooses what a transaction does: mostly little, now and then much.
func (c *clerk) plan() []step {
	status := fmt.Sprintf("%s%d", c.name, c.random.IntN(1000))
	size := 1 + c.random.IntN(25)
	if c.random.IntN(20) == 0 {
		size = bulk/4 + c.random.IntN(3*bulk/4)
	}
	first := c.next
	c.next += size
	from := c.random.IntN(tasks)
	steps := []step{
		{take, []any{c.name, first, first + size - 1}},
		{work, []any{status, task(from), task(from + size), size}},
	}
	if back := c.random.IntN(200); first > back && c.random.IntN(3) == 0 {
		steps = append(steps, step{amend, []any{status, order(c.name, first-back), order(c.name, first)}})
	}
	return steps
}

func task(n int) string { return fmt.Sprintf(Mark+"-task-%05d", n) }

func order(clerk string, n int) string { return fmt.Sprintf("%s-%08d", clerk, n) }

// lag is how long the transaction stays open: most of them shortly.
func (c *clerk) lag() time.Duration {
	if c.random.IntN(10) == 0 {
		return time.Duration(c.random.Int64N(int64(late)))
	}
	return time.Duration(c.random.Int64N(int64(late / 15)))
}
