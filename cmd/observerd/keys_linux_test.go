package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestKeysOutliveAWiderColumn widens the column of a key, and changes all rows.
func TestKeysOutliveAWiderColumn(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]keysDatabase{
		"postgres": postgresKeys(t),
		"mariadb":  mariadbKeys(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.run(t, "CREATE TABLE orders (id decimal(10,1) PRIMARY KEY, note varchar(20), at timestamp NOT NULL)")
			for i := range 50 {
				s.run(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, 'new', '2026-03-01 10:00:%02d')", i+1, i))
			}
			hour := 10
			widen := func(to string) { // and change all rows
				hour++
				s.run(t, "ALTER TABLE orders "+s.alter+" decimal("+to+")")
				s.run(t, fmt.Sprintf("UPDATE orders SET note = 'wide', at = '2026-03-01 %d:00:00'", hour))
			}
			n := &nest{folder: t.TempDir(), secrets: [][]byte{[]byte(canary)}}
			must(t, os.WriteFile(filepath.Join(n.folder, "config.yaml"), []byte(fmt.Sprintf(`
database: {url: "sqlite:observerd.db"}
sources: {shop: {url: %q}}
observers: [{id: orders, type: order, source: shop, table: orders, key: id, timestamp: at, detect: change}]
sinks: [{id: file, type: file, path: events.jsonl}]
http: {listen: ""}
`, s.url)), 0o600))
			n.expect(t, 0, "", "migrate", "up")
			n.expect(t, 0, " 50 events written", "poll", "orders", "--once")

			widen("12,2")
			n.expect(t, 0, " 50 events written", "poll", "orders", "--once")
			n.expect(t, 0, " 0 events written", "poll", "orders", "--once")
			n.holds(t, "SELECT count(*) || ' ' || max(version) || ' ' || max(key + 0) || ' ' || count(CASE WHEN key LIKE '%.%' THEN 1 END) FROM obs_observed", "50 2 50 0")

			widen("14,4")
			n.expect(t, 0, " 50 events written", "poll", "orders", "--once")
			n.holds(t, "SELECT count(*) || ' ' || max(version) || ' ' || max(key + 0) || ' ' || count(CASE WHEN key LIKE '%.%' THEN 1 END) FROM obs_observed", "50 3 50 0")
			n.holds(t, "SELECT count(DISTINCT subject) || ' ' || sum(change = 'new') FROM obs_event", "50 50")
		})
	}
}

// expect runs a command that ends with a code and says a text.
func (n *nest) expect(t *testing.T, code int, text string, args ...string) {
	t.Helper()
	if got, said := n.command(t, args...); got != code || !strings.Contains(said, text) {
		t.Fatalf("%v ended with %d and said\n%swant %d and %q", args, got, said, code, text)
	}
}

// holds runs a statement in the coordination database, whose first row is that.
func (n *nest) holds(t *testing.T, statement, want string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(n.folder, "observerd.db"))
	must(t, err)
	defer db.Close()
	var got string
	must(t, db.QueryRowContext(t.Context(), statement).Scan(&got))
	if got != want {
		t.Fatalf("%s: %s, want %s", statement, got, want)
	}
}

// keysDatabase is a source, what widens a column in it, and a session of its owner.
type keysDatabase struct {
	url, alter string
	run        func(t *testing.T, statement string)
}

func postgresKeys(t *testing.T) keysDatabase {
	url := pgtest.New(t)
	return keysDatabase{url, "ALTER id TYPE", func(t *testing.T, text string) { statement(t, url, text) }}
}

func mariadbKeys(t *testing.T) keysDatabase {
	url := mariatest.New(t)
	conn := mariatest.Connect(t, url, nil)
	return keysDatabase{url, "MODIFY id", func(t *testing.T, text string) {
		_, err := conn.ExecContext(t.Context(), text)
		must(t, err)
	}}
}
