package database

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/test/kit/lockdbtest"
)

// TestLocksAreFoundByKey reads the plans of a search, of which the first page is wanted.
func TestLocksAreFoundByKey(t *testing.T) {
	t.Parallel()
	db := opened(t, lockdbtest.Postgres(t, ""))
	for _, text := range []string{
		`INSERT INTO int_lock (lock_key, region, client_id, created_date) SELECT g, 'LOCKS', g, now() FROM generate_series(1, 20000) g`,
		`INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness)
		 SELECT g, 'LOCKS', g, g, g, 'a', 'lock:exclusive:page:writing:' || g, 1000, now(), '', '' FROM generate_series(1, 20000) g`,
		`ANALYZE int_lock, obs_lock`,
	} {
		if _, err := db.db.Main.ExecContext(t.Context(), db.db.Rendering().SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	for name, q := range map[string]lock.Query{
		"all":           {},
		"a subject":     {Parts: []string{"page"}},
		"one resource":  {Parts: []string{"page", "777"}},
		"of no node":    {Node: "b"},
		"the last page": {After: lock.Held{Row: "9"}},
		"an old one":    {OlderThan: time.Hour},
		"expired":       {Expired: true},
	} {
		q.Region, q.Limit = "LOCKS", 1000
		if p := planOf(t, db, `EXPLAIN `+findSQL, db.findArgs(q)...); strings.Contains(p, "Seq Scan on obs_lock") || strings.Contains(p, "Seq Scan on int_lock") {
			t.Errorf("%s: the locks are found by\n%s", name, p)
		}
	}
	one := lock.Query{Region: "LOCKS", Key: "777", Limit: 1000}
	if p := planOf(t, db, `EXPLAIN `+findSQL, db.findArgs(one)...); !strings.Contains(p, "(lock_key = '777'::bpchar)") {
		t.Errorf("one lock is found by\n%s", p)
	}
	lite := opened(t, lockdbtest.SQLite(t))
	if p := planOf(t, lite, `EXPLAIN QUERY PLAN `+findSQL, lite.findArgs(one)...); !strings.Contains(p, "SEARCH o USING INDEX sqlite_autoindex_obs_lock_1 (lock_key>?)") {
		t.Errorf("on SQLite the locks are found by\n%s", p)
	}
}

func opened(t *testing.T, url string) *Provider {
	t.Helper()
	p, err := Open(t.Context(), url, Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.node.Close() })
	return p
}

// planOf returns what a statement that explains another says: SQLite says it in the last
// of four columns.
func planOf(t *testing.T, p *Provider, text string, args ...any) string {
	t.Helper()
	var plan strings.Builder
	err := p.db.Query(t.Context(), "explain", p.db.Rendering().SQL(text), func(scan func(...any) error) error {
		var line string
		into := []any{&line}
		if strings.HasPrefix(text, "EXPLAIN QUERY PLAN") {
			into = []any{new(int), new(int), new(int), &line}
		}
		err := scan(into...)
		plan.WriteString(line + "\n")
		return err
	}, args...)
	if err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
