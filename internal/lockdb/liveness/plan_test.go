package liveness

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestLookReadsNoLocksOfOthers reads the plans of a look, which every node makes four times
// a second: general locks must not cost it anything.
func TestLookReadsNoLocksOfOthers(t *testing.T) {
	t.Parallel()
	db := migrated(t, pgtest.New(t))
	for _, text := range []string{
		`INSERT INTO int_lock (lock_key, region, client_id, created_date) SELECT g, CASE WHEN g < 4 THEN 'DEFAULT' ELSE 'LOCKS' END, g, now() FROM generate_series(1, 20000) g`,
		`INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness)
		 SELECT lock_key, region, client_id, 1, '', '', '', 1000, now(), 'boot-' || g % 50, client_id, 'session' FROM int_lock, LATERAL (SELECT lock_key::int AS g) n`,
		`INSERT INTO obs_hold SELECT g, 'LOCKS', g, g, 'shared', 1, '', '', '', '', 1000, now(), now(), 'boot-' || g % 50, 'session' FROM generate_series(1, 20000) g`,
		`ANALYZE int_lock, obs_lock, obs_hold`,
	} {
		if _, err := db.Main.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	boots, _ := db.List([]string{"boot-7", "boot-8"})
	regions, _ := db.List([]string{"DEFAULT"})
	for name, q := range map[string]struct {
		text string
		args []any
	}{
		"the look":           {snapshotText(db, []string{"DEFAULT"}), nil},
		"what the dead hold": {db.SQL(abandonedSQL), []any{boots, regions, BySession, mostAbandoned}},
	} {
		plan := explain(t, db, q.text, q.args)
		for _, table := range []string{"int_lock", "obs_lock", "obs_hold"} {
			if strings.Contains(plan, "Seq Scan on "+table) {
				t.Errorf("%s is planned as\n%s", name, plan)
			}
		}
	}
}

// On SQLite the plan depends on the indexes alone: nobody has counted the rows.
func TestLookReadsNoLocksOfOthersOnSQLite(t *testing.T) {
	t.Parallel()
	db := migrated(t, "sqlite:"+t.TempDir()+"/observerd.db")
	for name, q := range map[string]struct {
		text string
		args []any
	}{
		"the look":           {db.SQL(snapshotText(db, []string{"DEFAULT"})), nil},
		"what the dead hold": {db.SQL(abandonedSQL), []any{`["boot-7","boot-8"]`, `["","DEFAULT"]`, ByFlock, mostAbandoned}},
	} {
		rows, err := db.Main.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+q.text, q.args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		if !strings.Contains(text, "SEARCH o USING INDEX obs_lock_") || !strings.Contains(text, "SEARCH l USING ") {
			t.Errorf("%s does not search:\n%s", name, text)
		}
		for _, step := range plan {
			if words := strings.Fields(step); words[0] == "SCAN" && slices.Contains([]string{"l", "o", "h"}, words[1]) {
				t.Errorf("%s is planned as\n%s", name, text)
			}
		}
	}
}

// TestLookReadsWhatTheDeadHold has a living process that holds more than one look reads. A row
// of obs_hold outlives its lock when its time was over before that of the others: it would be
// looked at in vain until the janitor comes. So would be the leases of a process that shows
// itself no more.
func TestLookReadsWhatTheDeadHold(t *testing.T) {
	t.Parallel()
	for dialect, url := range map[string]string{"sqlite": "sqlite:" + t.TempDir() + "/observerd.db", "postgres": pgtest.New(t)} {
		db := migrated(t, url)
		for _, text := range []string{
			`INSERT INTO int_lock (lock_key, region, client_id, created_date)
			 WITH RECURSIVE n(g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM n WHERE g < 1100) SELECT CAST(g AS TEXT), 'LOCKS', CAST(g AS TEXT), {utc} FROM n`,
			`INSERT INTO int_lock (lock_key, region, client_id, created_date)
			 VALUES ('alone', 'LOCKS', 'alone', {utc}), ('unseen', 'LOCKS', 'unseen', {utc}),
			        ('shared', 'LOCKS', 'group', {utc}), ('unseen too', 'LOCKS', 'group', {utc}), ('others', 'LOCKS', 'another group', {utc})`,
			`INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness)
			 SELECT lock_key, region, client_id, 1, '', '', '', 1000, {now}, CASE WHEN lock_key IN ('alone', 'unseen') THEN 'dead' ELSE 'alive' END, client_id,
			        CASE WHEN lock_key = 'unseen' THEN '' ELSE 'session' END
			   FROM int_lock WHERE lock_key NOT IN ('shared', 'unseen too', 'others')`,
			`INSERT INTO obs_hold (lock_key, region, term, group_term, mode, fence, name, node, descriptor, metadata, ttl_ms, acquired_at, touched_at, boot_id, liveness)
			 SELECT k, 'LOCKS', k, 'group', 'shared', 1, '', '', '', '', 1000, {now}, {now}, 'dead',
			        CASE WHEN k = 'unseen too' THEN '' ELSE 'session' END
			   FROM (SELECT 'shared' AS k UNION ALL SELECT 'unseen too' UNION ALL SELECT 'others' UNION ALL SELECT 'free') AS missing`,
		} {
			if _, err := db.Main.ExecContext(t.Context(), db.SQL(text)); err != nil {
				t.Fatal(err)
			}
		}
		m := New(&freer{}, Options{DB: db})
		s := snapshot{
			processes: []nodeSeen{{boot: "alive", liveness: BySession}, {boot: "dead", liveness: BySession}},
			alive:     func(boot string) (alive, known bool) { return boot == "alive", true },
		}
		_, absent := m.census(s)
		if err := m.addAbandoned(t.Context(), &s, absent); err != nil {
			t.Fatal(err)
		}
		if len(s.leases) != 2 || s.leases[0].Key != "alone" || s.leases[0].shared || s.leases[1].Key != "shared" || !s.leases[1].shared {
			t.Errorf("%s: %d leases are read, want the two of the dead", dialect, len(s.leases))
		}
	}
}

// TestLooksReadTheSameOfWhatTheDeadHold has a dead process that holds more than one look reads,
// in a table so large that the server lets one scan follow another.
func TestLooksReadTheSameOfWhatTheDeadHold(t *testing.T) {
	t.Parallel()
	db := migrated(t, pgtest.New(t))
	for _, text := range []string{
		`INSERT INTO int_lock (lock_key, region, client_id, created_date) SELECT g, 'LOCKS', g, now() FROM generate_series(1, 30000) g`,
		`INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness)
		 SELECT lock_key, region, client_id, 1, '', '', repeat('x', 1500), 1000, now(), 'dead', client_id, 'session' FROM int_lock`,
		`ANALYZE int_lock, obs_lock, obs_hold`,
	} {
		if _, err := db.Main.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	m := New(&freer{}, Options{DB: db})
	read := func() (terms []string) {
		var s snapshot
		if err := m.addAbandoned(t.Context(), &s, map[string]bool{"dead": true}); err != nil {
			t.Fatal(err)
		}
		for _, l := range s.leases {
			terms = append(terms, l.term)
		}
		slices.Sort(terms)
		return terms
	}
	first := read()
	if len(first) != mostAbandoned {
		t.Errorf("%d leases are read, want %d", len(first), mostAbandoned)
	}
	if !slices.Equal(read(), first) {
		t.Error("the next look has read others")
	}
}

func migrated(t *testing.T, url string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(sqldb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func explain(t *testing.T, db *sqldb.DB, text string, args []any) string {
	t.Helper()
	rows, err := db.Main.QueryContext(t.Context(), `EXPLAIN `+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
