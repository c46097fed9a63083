package cluster_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/simtest"
)

// shop is a source that others write: a PostgreSQL database with orders, which
// only ever appear, tasks, which change, and stock, which has no timestamp.
type shop struct {
	url string
	db  *sql.DB
}

func openShop(t *testing.T) shop {
	t.Helper()
	return openShopAt(t, pgtest.New(t))
}

func openShopAt(t *testing.T, url string) shop {
	t.Helper()
	s := shop{url: url, db: openSQL(t, "pgx", url)}
	s.db.SetMaxOpenConns(8)
	s.exec(t, `
		CREATE TABLE orders (order_id TEXT PRIMARY KEY, status TEXT NOT NULL, updated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
		CREATE TABLE tasks (LIKE orders INCLUDING ALL);
		ALTER TABLE tasks RENAME COLUMN order_id TO task_id;
		CREATE TABLE stock (sku TEXT PRIMARY KEY, status TEXT NOT NULL);
		CREATE INDEX ON orders (updated_at, order_id);
		CREATE INDEX ON tasks (updated_at, task_id);
		INSERT INTO stock SELECT 'sku-' || n, 'full' FROM generate_series(1, 8) n`)
	return s
}

func (s shop) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// order puts an order into the shop, now.
func (s shop) order(t *testing.T, id string) {
	t.Helper()
	s.exec(t, `INSERT INTO orders VALUES ($1, 'NEW', clock_timestamp())`, id)
}

// orders puts many orders into the shop, one after the other.
func (s shop) orders(t *testing.T, prefix string, n int) {
	t.Helper()
	s.exec(t, `
		INSERT INTO orders
		SELECT $1::text || '-' || lpad(n::text, 4, '0'), 'NEW', clock_timestamp()
		  FROM generate_series(1, $2::int) n`, prefix, n)
}

// olderThan complains until all orders that can be seen are that old.
func (s shop) olderThan(t *testing.T, age time.Duration) func() error {
	t.Helper()
	return func() error {
		var old bool
		err := s.db.QueryRowContext(t.Context(),
			`SELECT clock_timestamp() - max(updated_at) > $1 * interval '1 ms' FROM orders`, age.Milliseconds()).Scan(&old)
		if err == nil && !old {
			err = errNothingYet
		}
		return err
	}
}

// rows are the keys and statuses of all tables, by the stream that polls them.
// An order counts with the status that it had when it was new.
func (s shop) rows(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := make(map[string]map[string]string)
	for stream, query := range map[string]string{
		"orders": `SELECT order_id, 'NEW' FROM orders`,
		"tasks":  `SELECT task_id, status FROM tasks`,
		"stock":  `SELECT sku, status FROM stock`,
	} {
		all[stream] = make(map[string]string)
		m := memory{dialect: "postgres", db: s.db}
		err := m.visit(t, query, func(scan func(...any) error) error {
			var key, status string
			err := scan(&key, &status)
			all[stream][key] = status
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// late is how long the slowest of the shop's transactions stays open after it
// has taken the time that its rows carry.
const late = 1500 * time.Millisecond

// writers of a source.
const writers = 3

// busy lets the shop be written until the returned function is called: rows
// carry the beginning of their transaction, which ends a little or much later,
// so that they appear in another order than that of their timestamps, and some
// are rolled back.
func (s shop) busy(t *testing.T) (quiet func()) {
	t.Helper()
	return busily(t, func(_ int, random *rand.Rand) writes { return (&clerk{s, random}).write })
}

// writes writes one transaction, whose rows are named after id.
type writes func(ctx context.Context, id string) error

// busily lets writers work side by side until the returned function is called.
func busily(t *testing.T, writer func(n int, random *rand.Rand) writes) (quiet func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for n := range writers {
		write := writer(n, rand.New(rand.NewPCG(simtest.Seed(), uint64(n))))
		work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := write(ctx, fmt.Sprintf("w%d-%04d", n, i)); err != nil && ctx.Err() == nil {
					t.Errorf("write into the source: %v", err)
					return
				}
			}
		})
	}
	return func() {
		t.Helper()
		cancel()
		work.Wait()
	}
}

// clerk writes into a shop.
type clerk struct {
	shop
	random *rand.Rand
}

// write is one transaction of the shop. It is not given up in its midst: a
// COMMIT whose client has gone would take effect later than the test thinks.
func (s *clerk) write(ctx context.Context, id string) error {
	whole := context.WithoutCancel(ctx)
	tx, err := s.db.BeginTx(whole, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	task, sku := fmt.Sprintf("task-%d", s.random.IntN(20)), fmt.Sprintf("sku-%d", 1+s.random.IntN(8))
	// The stock comes last: its row lock would make the writers wait for each other.
	for _, statement := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO orders VALUES ($1, 'NEW', now())`, []any{id}},
		{`INSERT INTO orders VALUES ($1 || '-b', 'NEW', now())`, []any{id}},
		{`SET LOCAL lock_timeout = '20s'`, nil},
		{`INSERT INTO tasks VALUES ($1, $2, now())
		  ON CONFLICT (task_id) DO UPDATE SET status = excluded.status, updated_at = greatest(tasks.updated_at, excluded.updated_at) + interval '1 microsecond'`, []any{task, id}},
	} {
		if _, err := tx.ExecContext(whole, statement.text, statement.args...); err != nil {
			return err
		}
	}
	if err := lag(ctx, s.random); err != nil {
		return err
	}
	if _, err := tx.ExecContext(whole, `UPDATE stock SET status = $2 WHERE sku = $1`, sku, id); err != nil {
		return err
	}
	if s.random.IntN(10) == 0 {
		return tx.Rollback()
	}
	return tx.Commit()
}

// lag keeps a transaction open, most of them shortly.
func lag(ctx context.Context, random *rand.Rand) error {
	d := time.Duration(random.Int64N(int64(late / 20)))
	if random.IntN(8) == 0 {
		d = time.Duration(random.Int64N(int64(late)))
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
