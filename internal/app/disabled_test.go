package app_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx".

	"github.com/observerd/observerd/internal/app"
)

// TestDisabledNodeTakesNoLock covers the canary: it is ready and seen, and
// neither polls nor delivers nor cleans.
func TestDisabledNodeTakesNoLock(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		p.config.Scheduler.Enabled = false
		p.config.Database.JanitorInterval = 10 * time.Millisecond
		node := p.start(t)
		ready(t, node)
		op := p.operator(t)
		var locks, turns int
		for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); {
			report, err := op.Report(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			locks, turns = locks+len(report.Locks), turns+len(report.Types)
			<-time.After(20 * time.Millisecond)
		}
		if locks > 0 || turns > 0 {
			t.Errorf("a node that is switched off had %d locks and %d turns", locks, turns)
		}
		eventually(t, func() error {
			report, err := op.Report(t.Context())
			if err == nil && (len(report.Nodes) != 1 || len(report.Nodes[0].Types) != 0) {
				err = errors.New("the node is not seen, or seen with types")
			}
			return err
		})
	})
}

// TestDisabledNodeBesideOthers keeps a node that is switched off beside one that
// works and beside a Java node that holds a lock. For many turns, every lock
// that anybody takes is noted by the database itself.
func TestDisabledNodeBesideOthers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		p.config.Database.JanitorInterval = 50 * time.Millisecond
		worker := p.start(t)
		ready(t, worker)
		db := p.beside(t)
		takers(t, db)
		off := p.startOff(t, "off")
		foreign := holdAsJava(t, db, "inventory-observer-poll")
		p.turns(t, db, 4)
		for range 3 {
			if code, text := get(t, off, "/readyz"); code != 200 {
				t.Errorf("readyz: %d %s", code, text)
			}
			p.turns(t, db, 2)
		}
		if n := count(t, db, `SELECT count(*) FROM taken WHERE node = 'off'`); n != 0 {
			t.Errorf("the node that is switched off has taken %d locks", n)
		}
		for _, name := range []string{"order-observer-poll", "wes-observer-poll", "observerd-janitor"} {
			if n := count(t, db, `SELECT count(*) FROM taken WHERE node = 'test-node' AND name = '`+name+`'`); n == 0 {
				t.Errorf("the other node has never taken %s: was anything noted?", name)
			}
		}
		if n := count(t, db, `SELECT count(*) FROM obs_poll WHERE node <> 'test-node'`); n != 0 {
			t.Errorf("%d polls by another than the node at work", n)
		}
		if n := count(t, db, `SELECT count(*) FROM int_lock WHERE client_id = '`+foreign+`'`); n != 1 {
			t.Error("the lock of the Java node was touched")
		}
		quiet(t, off)
	})
}

// startOff starts one more node, of another name, that is switched off.
func (p place) startOff(t *testing.T, name string) *app.App {
	t.Helper()
	config := *p.config
	config.Node.Name, config.Scheduler.Enabled = name, false
	config.Database.JanitorInterval = 10 * time.Millisecond
	p.config = &config
	node := p.start(t)
	ready(t, node)
	return node
}

// quiet complains of a node that has taken anything by its own account.
func quiet(t *testing.T, node *app.App) {
	t.Helper()
	_, text := get(t, node, "/metrics")
	for line := range strings.Lines(text) {
		for _, metric := range []string{
			"scheduler_observer_lock_acquired_total", "scheduler_observer_polls_total", "observerd_leases_held", "observerd_lease_renewals_total",
			"observerd_relay_leader", "observerd_relay_delivered_events_total", "observerd_janitor_deleted_rows_total",
		} {
			if strings.HasPrefix(line, metric) && !strings.HasSuffix(line, " 0\n") {
				t.Errorf("a node that is switched off has %s", line)
			}
		}
	}
}

// beside opens the coordination database beside the nodes.
func (p place) beside(t *testing.T) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", p.config.Database.URL.Reveal()
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// takers has the database note which node takes which lock from now on.
func takers(t *testing.T, db *sql.DB) {
	t.Helper()
	statements := []string{
		`CREATE TABLE taken (node TEXT, name TEXT)`,
		`CREATE TRIGGER taken_new AFTER INSERT ON obs_lock BEGIN INSERT INTO taken VALUES (NEW.node, NEW.name); END`,
		`CREATE TRIGGER taken_again AFTER UPDATE OF term ON obs_lock BEGIN INSERT INTO taken VALUES (NEW.node, NEW.name); END`,
	}
	if isPostgres(t, db) {
		statements = []string{
			`CREATE TABLE taken (node TEXT, name TEXT)`,
			`CREATE FUNCTION taken() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS 'BEGIN INSERT INTO taken VALUES (NEW.node, NEW.name); RETURN NULL; END'`,
			`CREATE TRIGGER taken AFTER INSERT OR UPDATE OF term ON obs_lock FOR EACH ROW EXECUTE FUNCTION taken()`,
		}
	}
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func isPostgres(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	return db.QueryRowContext(t.Context(), `SELECT version()`).Scan(&version) == nil
}

// holdAsJava puts the row of a Java node into INT_LOCK that lasts for longer
// than the test, and returns its client id.
func holdAsJava(t *testing.T, db *sql.DB, key string) string {
	t.Helper()
	const id = "7d3f2c50-52cb-4a3e-9a5e-0f4b7a1c2d01"
	// The lock may be held at this moment; then the next one tries again.
	eventually(t, func() error {
		later := `strftime('%Y-%m-%d %H:%M:%f000', 'now', '+1 hour')`
		if isPostgres(t, db) {
			later = `clock_timestamp() AT TIME ZONE 'UTC' + interval '1 hour'`
		}
		_, err := db.ExecContext(t.Context(), `INSERT INTO int_lock (lock_key, region, client_id, created_date) VALUES ('`+key+`', 'DEFAULT', '`+id+`', `+later+`)`)
		return err
	})
	return id
}

// turns waits until orders were polled so often from now on.
func (p place) turns(t *testing.T, db *sql.DB, n int) {
	t.Helper()
	before := count(t, db, `SELECT count(*) FROM obs_poll WHERE stream = 'orders'`)
	eventually(t, func() error {
		if got := count(t, db, `SELECT count(*) FROM obs_poll WHERE stream = 'orders'`) - before; got < n {
			return fmt.Errorf("%d turns, want %d", got, n)
		}
		return nil
	})
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
