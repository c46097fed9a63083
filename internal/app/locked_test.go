package app_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/pgtest"
)

const lockedYAML = `
node: {name: a}
database: {url: %q}
scheduler: {observer: {fixed-delay: 1s, shutdown-timeout: 5s, lock: {ttl: 15s}}}
sources: {erp: {url: %q, pool-size: 2, query-timeout: 10m}}
observers:
  - {id: orders, type: order, source: erp, table: orders, key: id, timestamp: at}
  - {id: returns, type: order, event: Returned, source: erp, table: orders, key: id, timestamp: at}
  - {id: stock, type: inventory, source: erp, table: orders, key: id}
  - {id: query-1, type: order, event: Seen, source: erp, key: id, timestamp: at, overlap: 1s, query: "SELECT id, at FROM orders"}
  - {id: query-2, type: order, event: Seen, source: erp, key: id, timestamp: at, overlap: 1s, query: "SELECT id, at FROM orders"}
  - {id: query-3, type: order, event: Seen, source: erp, key: id, timestamp: at, overlap: 1s, query: "SELECT id, at FROM orders"}
  - {id: query-4, type: order, event: Seen, source: erp, key: id, timestamp: at, overlap: 1s, query: "SELECT id, at FROM orders"}
  - {id: query-5, type: order, event: Seen, source: erp, key: id, timestamp: at, overlap: 1s, query: "SELECT id, at FROM orders"}
  - {id: tasks, type: wes, source: erp, table: tasks, key: id, timestamp: at}
sinks: [{id: file, type: file, path: %q}]
http: {listen: "127.0.0.1:0"}
`

// TestALockedTableHoldsUpNoOtherType has more observers of a table that is locked
// over there than the source may have connections, and than may begin at a time, and one of
// another table, which is polled as ever. The first go on when the lock is gone.
func TestALockedTableHoldsUpNoOtherType(t *testing.T) {
	t.Parallel()
	warehouse, coordination, folder := pgtest.New(t), pgtest.New(t), t.TempDir()
	owner, memory := openPostgres(t, warehouse), openPostgres(t, coordination)
	run(t, owner, `CREATE TABLE orders (id text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`)
	run(t, owner, `CREATE TABLE tasks (id text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`)
	run(t, owner, `INSERT INTO orders VALUES ('one')`)
	path := filepath.Join(folder, "config.yaml")
	text := fmt.Appendf(nil, lockedYAML, coordination, warehouse, filepath.Join(folder, "events.jsonl"))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	ready(t, place{folder: folder, config: cfg}.start(t))
	has := func(stream string, want int) {
		t.Helper()
		eventually(t, func() error {
			if n := count(t, memory, `SELECT count(*) FROM obs_event WHERE stream = '`+stream+`'`); n != want {
				return fmt.Errorf("%d events of %s, want %d", n, stream, want)
			}
			return nil
		})
	}
	for _, stream := range []string{"orders", "returns", "stock", "query-1", "query-5"} {
		has(stream, 1)
	}
	holder, err := owner.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback() }()
	if _, err := holder.ExecContext(t.Context(), `LOCK TABLE orders IN ACCESS EXCLUSIVE MODE; INSERT INTO orders VALUES ('two')`); err != nil {
		t.Fatal(err)
	}
	// Each row is polled well before the query timeout, when those who wait for
	// the lock would give up their connections in any case.
	for n := range 4 {
		run(t, owner, fmt.Sprintf(`INSERT INTO tasks VALUES ('task %d')`, n))
		has("tasks", n+1)
	}
	if err := holder.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"orders", "returns", "stock", "query-1", "query-5"} {
		has(stream, 2)
	}
}

func openPostgres(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}
