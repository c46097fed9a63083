package database_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/test/kit/waittest"
)

// queriesOfGuide are those that docs/locks.md shows.
func queriesOfGuide(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/locks.md")
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllSubmatch(text, -1) {
		queries = append(queries, string(m[1]))
	}
	if len(queries) != 3 {
		t.Fatalf("the guide has %d queries, want 3", len(queries))
	}
	return queries
}

// rowsOf returns the rows of a query, each as text.
func rowsOf(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		cells := make([]string, len(values))
		for i, v := range values {
			cells[i] = v.String
		}
		all = append(all, strings.Join(cells, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// fail has the lock be refused so often.
func fail(t *testing.T, m *locks.Manager, d locks.Descriptor, times int) {
	t.Helper()
	for range times {
		if l, err := m.Acquire(t.Context(), d, locks.FailFast()); err == nil {
			t.Fatalf("%s was not held", l.Descriptor())
		}
	}
}

// poll takes the lock of an observer type, and that of a sink, as a node does.
func poll(t *testing.T, url string) {
	t.Helper()
	db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, descriptor := range map[string]string{"order-observer-poll": "lock:exclusive:observer:polling:order", "sink-file": ""} {
		r := lock.Request{Key: name, Region: "DEFAULT", TTL: 65 * time.Second, Name: name, Node: "node-a", Descriptor: descriptor}
		if _, err := db.Leases().Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// waitFor has a caller wait for the lock until stop, or the end of the test.
func waitFor(t *testing.T, m *locks.Manager, d locks.Descriptor) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = m.Acquire(ctx, d, locks.Within(time.Hour)) })
	stop = func() {
		cancel()
		waiting.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// TestViews asks what the guide asks, of locks that are held, shared, waited for, over and
// released, and of those of a node.
func TestViews(t *testing.T) {
	t.Parallel()
	queries := queriesOfGuide(t)
	const odd = `a "50%3A:'` + "`" + `\`
	onBoth(t, func(t *testing.T, url string) {
		a, b, c := open(t, url, "a"), openWith(t, url, locks.Options{Node: "b", Subjects: []string{odd}}), open(t, url, "c")
		first := acquire(t, a, audit)
		acquire(t, a, writing)
		acquire(t, b, locks.Descriptor{Subject: odd, Predicate: "processing", Resources: []string{"x"}, TTL: 39 * time.Second})
		shared := locks.Descriptor{Subject: "fileset", Predicate: "reading", Resources: []string{"fs-1"}, Mode: locks.Shared, TTL: 95 * time.Second}
		acquire(t, a, shared)
		acquire(t, b, shared)
		poll(t, url)
		free, again, exclusive := audit, audit, shared
		free.Resources = []string{"free"}
		release(t, acquire(t, a, free))

		again.Predicate = "validating"
		exclusive.Predicate, exclusive.Mode = "writing", locks.Exclusive
		fail(t, c, audit, 7)
		fail(t, c, again, 5)
		fail(t, c, exclusive, 11)
		fail(t, c, writing, 10)
		if err := c.Close(t.Context()); err != nil { // It writes the failures.
			t.Fatal(err)
		}
		db := pool(t, url)
		expect := func(query string, want ...string) {
			t.Helper()
			if got := rowsOf(t, db, query); !slices.Equal(got, want) {
				t.Errorf("%s answers %q, want %q", query, got, want)
			}
		}
		expect(queries[0], "fileset 2", odd+" 1", "audit 1", "observer 1", "schema 1")
		expect(queries[1], "30 2", "60 1", "90 2", "300 1")
		expect(queries[2], "LOCKS audit:status-reconciliation 12", "LOCKS fileset:fs-1 11")
		expect(`SELECT subject, predicate, mode, node, term, fence, ttl_ms, CASE WHEN age_ms BETWEEN 0 AND 300000 AND left_ms BETWEEN 1 AND 300000 THEN 'yes' END
			FROM obs_active_locks WHERE name = 'audit:status-reconciliation'`, fmt.Sprintf("audit processing exclusive a %s %d 300000 yes", first.Term(), first.Fence()))
		expect(`SELECT active, average_ttl_ms, waiting, failures FROM obs_lock_stats WHERE subject = 'fileset' ORDER BY predicate`, "2 95000 0 0", "0  0 11")
		expect(`SELECT count(*) FROM obs_lock_stats WHERE name = 'fileset:fs-1' AND last_failed_at >= first_failed_at`, "1")
		stop := waitFor(t, b, writing)
		waittest.Eventually(t, time.Minute, func() error {
			if got := rowsOf(t, db, `SELECT waiting FROM obs_lock_stats WHERE subject = 'schema' AND active = 1`); !slices.Equal(got, []string{"1"}) {
				return fmt.Errorf("%q wait", got)
			}
			return nil
		})
		stop() // It would take the lock whose time is over.
		for _, table := range []string{"obs_lock", "obs_hold"} {
			if _, err := db.ExecContext(t.Context(), `UPDATE `+table+` SET ttl_ms = 0 WHERE region = 'LOCKS'`); err != nil {
				t.Fatal(err)
			}
		}
		expect(queries[0], "observer 1")
	})
}
