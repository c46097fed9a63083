package workload_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
	"github.com/observerd/observerd/test/kit/workload"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(pgtest.Wrap(m)) }

// TestJournalTellsWhatWasCommitted lets the writers work and compares the
// journal with the tables: what it says last of each row is the row, and its
// numbers have no gaps.
func TestJournalTellsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	if err := workload.Create(t.Context(), url, 2); err != nil {
		t.Fatal(err)
	}
	writers, err := workload.Open(t.Context(), url, 1, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, url, 3000)
	emptyAndRefill(t, writers, url)
	tally := writers.Close()
	if tally.Committed == 0 || tally.RolledBack == 0 {
		t.Errorf("the writers did %+v", tally)
	}
	writes, err := workload.Writes(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ stream, key string }
	last := make(map[row]workload.Write)
	gone := false
	for _, w := range writes {
		r := row{w.Stream, w.Key}
		if w.N != last[r].N+1 {
			t.Fatalf("%v goes on with %d after %d", r, w.N, last[r].N)
		}
		last[r], gone = w, gone || w.Gone
	}
	if !gone {
		t.Error("no row of the stock was ever missing")
	}
	for r, n := range current(t, url) {
		if last[row{r[0], r[1]}].N != n || last[row{r[0], r[1]}].Gone {
			t.Errorf("%v is at %d, the journal says %+v", r, n, last[row{r[0], r[1]}])
		}
	}
}

// emptyAndRefill has the stock without rows for a while.
func emptyAndRefill(t *testing.T, writers *workload.Writers, url string) {
	t.Helper()
	refill, err := writers.Empty(t.Context())
	if err != nil {
		t.Error(err)
	}
	rows := 0
	if err := connect(t, url).QueryRow(t.Context(), `SELECT count(*) FROM stock`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows are left, %v", rows, err)
	}
	if err := refill(); err != nil {
		t.Error(err)
	}
	if err := connect(t, url).QueryRow(t.Context(), `SELECT count(*) FROM ended`).Scan(&rows); err != nil || rows > 20 {
		t.Errorf("%d rows are still missing, %v", rows, err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// waitFor waits until the journal has that many entries and a deletion.
func waitFor(t *testing.T, url string, writes int) {
	t.Helper()
	conn := connect(t, url)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the writers are too slow"))
	defer cancel()
	for {
		var enough bool
		if err := conn.QueryRow(ctx, `SELECT count(*) >= $1 AND bool_or(gone) FROM journal`, writes).Scan(&enough); err != nil {
			t.Fatal(err, context.Cause(ctx))
		}
		if enough {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// current is the number of each row by stream and key.
func current(t *testing.T, url string) map[[2]string]int64 {
	t.Helper()
	rows, err := connect(t, url).Query(t.Context(), `
		SELECT 'orders', order_id, n FROM orders UNION ALL SELECT 'tasks', task_id, n FROM tasks UNION ALL SELECT 'stock', sku, n FROM stock
		 UNION ALL SELECT 'shelf001', slot, n FROM shelf001 UNION ALL SELECT 'shelf002', slot, n FROM shelf002`)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[[2]string]int64)
	var stream, key string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&stream, &key, &n}, func() error {
		all[[2]string{stream, key}] = n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
