package cluster_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/pgtest"
)

// postgresMarket is a market on PostgreSQL: orders, which only ever appear, tasks, which
// change, and stock, which has no timestamp.
type postgresMarket struct {
	market
	url string
	db  *sql.DB
}

func openPostgres(t *testing.T) postgresMarket {
	t.Helper()
	return openPostgresAt(t, pgtest.New(t))
}

func openPostgresAt(t *testing.T, url string) postgresMarket {
	t.Helper()
	db := openSQL(t, "pgx", url)
	s := postgresMarket{url: url, db: db, market: sqlMarket(t, "postgres", db, sayings{
		order: `INSERT INTO orders VALUES ($1, 'NEW', now())`,
		task: `INSERT INTO tasks VALUES ($2, $1, now())
			ON CONFLICT (task_id) DO UPDATE SET status = excluded.status, updated_at = greatest(tasks.updated_at, excluded.updated_at) + interval '1 microsecond'`,
		change: `UPDATE stock SET status = $1 WHERE sku = $2`,
		put:    `INSERT INTO stock (status, sku) VALUES ($1, $2)`,
		drop:   `DELETE FROM stock WHERE sku = $1`,
	})}
	s.exec(t, `
		CREATE TABLE orders (order_id TEXT PRIMARY KEY, status TEXT NOT NULL, updated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
		CREATE TABLE tasks (LIKE orders INCLUDING ALL);
		ALTER TABLE tasks RENAME COLUMN order_id TO task_id;
		CREATE TABLE stock (sku TEXT PRIMARY KEY, status TEXT NOT NULL);
		CREATE INDEX ON orders (updated_at, order_id);
		CREATE INDEX ON tasks (updated_at, task_id)`)
	s.fill(t, s.say.put, "")
	return s
}

func (s postgresMarket) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// order puts an order into the market, now.
func (s postgresMarket) order(t *testing.T, id string) {
	t.Helper()
	s.exec(t, `INSERT INTO orders VALUES ($1, 'NEW', clock_timestamp())`, id)
}

// orders puts many orders into the market, one after the other.
func (s postgresMarket) orders(t *testing.T, prefix string, n int) {
	t.Helper()
	s.exec(t, `
		INSERT INTO orders
		SELECT $1::text || '-' || lpad(n::text, 4, '0'), 'NEW', clock_timestamp()
		  FROM generate_series(1, $2::int) n`, prefix, n)
}

// olderThan complains until all orders that can be seen are that old.
func (s postgresMarket) olderThan(t *testing.T, age time.Duration) func() error {
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
