package lockdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// bouncer puts a PgBouncer before a database, as one that is older than 1.21 where it
// is newer.
func bouncer(t *testing.T, database string, mode bouncertest.Mode, settings ...string) string {
	t.Helper()
	o := bouncertest.Options{Mode: mode, Settings: map[string]string{}}
	if bouncertest.Prepares(t) {
		o.Settings["max_prepared_statements"] = "0"
	}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		o.Settings[name] = value
	}
	return bouncertest.Start(t, database, o).URL()
}

// trackers put poolers in transaction mode before a database that keep prepared
// statements apart: one that imitates PgBouncer 1.21, and a real one where there is.
func trackers(t *testing.T) map[string]func(t *testing.T, database string) string {
	t.Helper()
	all := map[string]func(*testing.T, string) string{
		"a stand-in": func(t *testing.T, database string) string { return bouncertest.StandIn(t, database) },
	}
	if bouncertest.Prepares(t) {
		all["PgBouncer"] = func(t *testing.T, database string) string {
			return bouncer(t, database, bouncertest.Transaction, "max_prepared_statements=100")
		}
	}
	return all
}

// untouched fails the test unless the next client of the pooler meets nothing of ours
// in its session.
func untouched(t *testing.T, pooled string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pooled)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	eventually(t, func() error { // A session that was left is cleaned a moment later.
		var timeouts, statements, locks string
		err := conn.QueryRow(t.Context(), `
			SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')),
			       (SELECT count(*)::text FROM pg_prepared_statements WHERE name NOT LIKE 'PGBOUNCER%' AND name NOT LIKE 'STANDIN%'),
			       (SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`,
			pgx.QueryExecModeExec).Scan(&timeouts, &statements, &locks)
		if err == nil && (timeouts != "0 0 0" || statements != "0" || locks != "0") {
			err = fmt.Errorf("the next client has the timeouts %s, %s prepared statements and %s advisory locks", timeouts, statements, locks)
		}
		return err
	})
}

// has complains of a session of a pool that lacks a setting.
func has(t *testing.T, db *lockdb.DB, name, everywhere, acquiring string) {
	t.Helper()
	main, lease, acquire, err := db.Settings(t.Context(), name)
	if err != nil || main != everywhere || lease != everywhere || acquire != acquiring {
		t.Errorf("%s is %s, %s for leases, %s for acquisitions, %v; want %s and %s", name, main, lease, acquire, err, everywhere, acquiring)
	}
}

// plans complains of a main pool that has not planned a statement as often, of ten times, or has
// kept a plan, which might be one for empty tables.
func plans(t *testing.T, db *lockdb.DB, want int) {
	t.Helper()
	for range 9 {
		if _, _, err := db.Plans(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if custom, generic, err := db.Plans(t.Context()); err != nil || custom < want || generic != 0 || want == 0 && custom > 0 {
		t.Errorf("the main pool has planned a statement %d times, and taken a plan %d times, %v; want %d and 0", custom, generic, err, want)
	}
}

// TestSessionsHaveTheirSettings has a server, and a PgBouncer in session mode before
// it, which ends a session that asks for them at the start.
func TestSessionsHaveTheirSettings(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(t *testing.T, database string) string{
		"server":    func(_ *testing.T, database string) string { return database },
		"PgBouncer": func(t *testing.T, database string) string { return bouncer(t, database, bouncertest.Session) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			exec(t.Context(), t, database, map[string]string{"postgres": `CREATE SCHEMA ours`})
			way := through(t, database)
			w := watch(t, changed(t, changed(t, way, parameter("search_path", "ours,public")), parameter("idle_in_transaction_session_timeout", "20s")))
			has(t, w.db, "statement_timeout", "30s", "30s")
			has(t, w.db, "lock_timeout", "5s", "300ms")
			has(t, w.db, "idle_in_transaction_session_timeout", "20s", "20s")
			has(t, w.db, "default_transaction_isolation", "read committed", "read committed")
			plans(t, w.db, 9)
			acquire(t, w.db, "order")
			if n := count(t, database, `SELECT count(*) FROM ours.int_lock`); n != 1 {
				t.Errorf("%d locks in the schema of the URL", n)
			}
			w.quit()
			untouched(t, way)
		})
	}
}

// TestPoolerThatMixesStatementsIsRefused has a PgBouncer in transaction mode, whose
// pool has so many sessions at rest, and picks one in either way.
func TestPoolerThatMixesStatementsIsRefused(t *testing.T) {
	t.Parallel()
	for _, roundRobin := range []string{"0", "1"} {
		for sessions := range 4 {
			t.Run(fmt.Sprint("round robin ", roundRobin, ", sessions ", sessions), func(t *testing.T) {
				t.Parallel()
				pooled := bouncer(t, pgtest.New(t), bouncertest.Transaction, "server_round_robin="+roundRobin)
				use(t, pooled, sessions)()
				db := open(t, pooled)
				_, err := db.Leases().Acquire(t.Context(), request("order"))
				for what, err := range map[string]error{"ready": db.Ready(t.Context()), "migrate": db.Migrate(t.Context()), "acquire": err} {
					if !errors.Is(err, sqldb.ErrPooler) || sqldb.Unavailable(err) || !strings.Contains(err.Error(), "1.21 or newer with max_prepared_statements") {
						t.Errorf("%s: %v", what, err)
					}
				}
				untouched(t, pooled)
			})
		}
	}
}

// use takes so many sessions of the pool, until they are released.
func use(t *testing.T, pooled string, sessions int) (release func()) {
	t.Helper()
	var clients []*pgx.Conn
	for range sessions {
		conn, err := pgx.Connect(t.Context(), pooled)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, conn)
		if _, err := conn.Exec(t.Context(), `BEGIN`); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, conn := range clients {
			if _, err := conn.Exec(t.Context(), `COMMIT`); err != nil {
				t.Error(err)
			}
			_ = conn.Close(t.Context())
		}
	}
}

// TestPoolerThatTracksStatements has one in transaction mode through which nodes can
// work: they set nothing, and no node sees their death.
func TestPoolerThatTracksStatements(t *testing.T) {
	t.Parallel()
	for name, tracker := range trackers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pooled := tracker(t, pgtest.New(t))
			w := watchAs(t, pooled, name)
			g := acquire(t, w.db, name)
			renewals, err := w.db.Leases().Renew(t.Context(), []lock.Grant{g})
			if err != nil || len(renewals) != 1 {
				t.Errorf("renewed %+v, %v", renewals, err)
			}
			shareThrough(t, w.db)
			store := w.db.Store(g)
			for _, n := range []int{3, 2500} { // By one statement, and by COPY.
				mustCommit(t, store, chunk(cursorOf(t, store, name), n))
			}
			w.live.Start(t.Context())
			eventually(t, func() error {
				if w.logged("level=WARN", "Liveness is switched off", "transaction mode") != 1 {
					return errors.New("liveness is not switched off")
				}
				return nil
			})
			if w.logged("level=WARN", "Connected through a connection pooler in transaction mode") != 1 {
				t.Error("the pooler is not told of once")
			}
			untouched(t, pooled)
			plans(t, w.db, 0)

			err = open(t, changed(t, pooled, parameter("search_path", "ours"))).Ready(t.Context())
			if !errors.Is(err, sqldb.ErrPooler) || !strings.Contains(err.Error(), "take search_path out of database.url") {
				t.Errorf("with a setting in the URL: %v", err)
			}
		})
	}
}

// shareThrough takes and gives back what is acquired by several statements at once.
func shareThrough(t *testing.T, db *lockdb.DB) {
	t.Helper()
	var requests []lock.Request
	for i, mode := range lock.Modes() {
		r := request(fmt.Sprint("shared-", i))
		r.Mode = mode
		requests = append(requests, r)
	}
	grants, err := general(db).AcquireAll(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := general(db).AcquireAll(t.Context(), requests); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("%v, want ErrHeld", err)
	}
	for _, g := range grants {
		if err := general(db).Release(t.Context(), g); err != nil {
			t.Error(err)
		}
	}
}

// TestPoolerIsNoticedLater has one that was taken for one in session mode.
func TestPoolerIsNoticedLater(t *testing.T) {
	t.Parallel()
	w := watchAs(t, bouncer(t, pgtest.New(t), bouncertest.Session), "a")
	w.db.ShareASession(true)
	w.live.Start(t.Context())
	eventually(t, func() error {
		if err := w.db.Ready(t.Context()); !errors.Is(err, sqldb.ErrPooler) {
			return errors.Join(errors.New("the pooler is not refused"), err)
		}
		return nil
	})
}
