package torture_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/test/kit/daemon"
)

const deadConfig = `
database: {url: "sqlite:state.db"}
scheduler: {order-observer: {fixed-delay: 1s}}
sources: {wms: {url: "sqlite:wms.db"}}
observers:
  - {id: orders, type: order, source: wms, table: orders, key: order_id, timestamp: updated_at, detect: change}
sinks: [{id: screen, type: stdout}]
http: {listen: "127.0.0.1:0"}
`

// deadTrial is a folder with a source that has poison rows, and a binary with failpoints.
type deadTrial struct{ dir, binary string }

func newDeadTrial(t *testing.T, binary string) deadTrial {
	t.Helper()
	d := deadTrial{t.TempDir(), binary}
	if err := os.WriteFile(filepath.Join(d.dir, "config.yaml"), []byte(deadConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	d.exec(t, `CREATE TABLE orders (order_id INTEGER PRIMARY KEY, status TEXT, updated_at TEXT NOT NULL)`)
	return d
}

func (d deadTrial) exec(t *testing.T, text string, args ...any) { d.write(t, "wms.db", text, args...) }

func (d deadTrial) write(t *testing.T, file, text string, args ...any) {
	t.Helper()
	db := d.open(t, file)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatal(err)
	}
}

func (d deadTrial) open(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(d.dir, file)+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// number is the one of a query of the coordination database.
func (d deadTrial) number(t *testing.T, query string) (n int) {
	t.Helper()
	db := d.open(t, "state.db")
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// command runs the program with failpoints, and returns what it said and how it ended.
func (d deadTrial) command(t *testing.T, rules string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.binary, args...)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), failpoint.Variable+"="+rules)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d deadTrial) must(t *testing.T, args ...string) {
	t.Helper()
	if out, err := d.command(t, "", args...); err != nil {
		t.Fatalf("observerd %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestRetriesOfPoisonRows retries poison rows, is killed, and does so beside a node.
func TestRetriesOfPoisonRows(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "observerd")
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Out: binary, Tags: "failpoints"}); err != nil {
		t.Fatal(err)
	}
	t.Run("killed", func(t *testing.T) { t.Parallel(); killedRetries(t, newDeadTrial(t, binary)) })
	t.Run("beside a node", func(t *testing.T) { t.Parallel(); retriesBesideANode(t, newDeadTrial(t, binary)) })
}

// killedRetries kills a retry of poison rows before a commit and after it. The next
// retry makes one event of each row in all, and no record is left.
func killedRetries(t *testing.T, d deadTrial) {
	t.Helper()
	for i := range 6 {
		d.exec(t, `INSERT INTO orders VALUES ($1, CAST(x'41ff42' AS TEXT), '2026-11-01 10:00:00')`, i)
	}
	d.exec(t, `INSERT INTO orders VALUES (100, 'new', '2026-11-01 10:00:09')`)
	d.must(t, "migrate", "up")
	d.must(t, "poll", "orders", "--once")
	d.exec(t, `UPDATE orders SET status = 'fixed'`)
	for i, rules := range []string{"commit.before=kill@1", "commit.after=kill@1", "commit.before=kill@3", "commit.after=kill@2"} {
		out, err := d.command(t, rules, "dead", "retry", "--all", "--actor", "alice")
		if err == nil || !strings.Contains(out, "failpoint name=") {
			t.Fatalf("%s: %v\n%s", rules, err, out)
		}
		d.write(t, "state.db", `DELETE FROM int_lock`) // as if its TTL were over
		if n := d.number(t, `SELECT count(*) FROM obs_audit WHERE actor = 'alice'`); n != i+1 {
			t.Errorf("%s: %d acts in the audit table", rules, n)
		}
		if events, records := d.number(t, `SELECT count(*) FROM obs_event`)-1, d.number(t, `SELECT count(*) FROM obs_dead`); events+records < 6 {
			t.Fatalf("%s: %d events and %d records of 6 rows", rules, events, records)
		}
	}
	if n := d.number(t, `SELECT count(*) FROM obs_event`); n < 4 {
		t.Errorf("the retries that were killed have made %d events", n-1)
	}
	d.must(t, "dead", "retry", "--all")
	d.must(t, "poll", "orders", "--once")
	if n := d.number(t, `SELECT count(*) FROM obs_event WHERE version = 1`); n != 7 {
		t.Errorf("%d events of 7 rows", n)
	}
	// Row 100 was observed before it was fixed, and its timestamp stayed.
	if n := d.number(t, `SELECT count(*) FROM obs_event WHERE version > 1 AND subject <> '100'`); n != 0 {
		t.Errorf("%d second events", n)
	}
	if n := d.number(t, `SELECT count(*) FROM obs_dead`); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// retriesBesideANode retries poison rows while a node polls them.
func retriesBesideANode(t *testing.T, d deadTrial) {
	t.Helper()
	d.must(t, "migrate", "up")
	node := exec.CommandContext(t.Context(), d.binary, "run")
	node.Dir = d.dir
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- node.Wait() }()
	const rounds, each = 12, 3
	retried := 0
	for round := range rounds {
		for i := range each {
			d.exec(t, `INSERT INTO orders VALUES ($1, CAST(x'41ff42' AS TEXT), strftime('%Y-%m-%d %H:%M:%f', 'now'))`, round*each+i)
		}
		time.Sleep(time.Duration(round) * 150 * time.Millisecond)
		// Some are written anew, which the node sees too.
		d.exec(t, `UPDATE orders SET status = 'fixed' || order_id WHERE order_id % 3 = 0 AND typeof(status) = 'text' AND status NOT LIKE 'fixed%'`)
		d.exec(t, `UPDATE orders SET status = 'fixed' || order_id, updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE status NOT LIKE 'fixed%'`)
		out, err := d.command(t, "", "dead", "retry", "--all")
		if err != nil {
			t.Errorf("round %d: %v\n%s", round, err, out)
		}
		retried += strings.Count(out, "became event")
	}
	d.must(t, "dead", "retry", "--all")
	if err := errors.Join(node.Process.Signal(os.Interrupt), <-ended); err != nil {
		t.Errorf("the node: %v", err)
	}
	if retried == 0 {
		t.Error("no retry has made an event")
	}
	d.must(t, "poll", "orders", "--once")
	d.must(t, "dead", "retry", "--all")
	if n := d.number(t, `SELECT count(*) FROM obs_event`); n != rounds*each {
		t.Errorf("%d events of %d rows", n, rounds*each)
	}
	if n := d.number(t, `SELECT count(DISTINCT subject) FROM obs_event WHERE version = 1`); n != rounds*each {
		t.Errorf("%d rows have an event", n)
	}
	if n := d.number(t, `SELECT count(*) FROM obs_dead`); n != 0 {
		t.Errorf("%d records are left", n)
	}
}
