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

// TestKeysOutliveAWiderColumn widens the column of a key, of a new stream and of one that
// began before keys had a normal form.
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

			n.holds(t, `UPDATE obs_cursor SET key_form = '', query_fingerprint = replace(query_fingerprint, '-normal-keys', '') RETURNING stream`, "orders")
			n.holds(t, `UPDATE obs_observed SET key = key || '.00' WHERE key = '50' RETURNING key`, "50.00")
			n.holds(t, `UPDATE obs_observed SET key = key || '.00' WHERE key <> '50.00' RETURNING 'all'`, "all")
			n.expect(t, 0, " 0 events written", "poll", "orders", "--once")
			widen("13,3")
			n.expect(t, 1, `column "id" of the key was `, "poll", "orders", "--once")
			n.expect(t, 1, "with scale 2 and has scale 3, by which the same rows have other keys; to go on with the same rows, run `observerd observers accept orders`",
				"poll", "orders", "--once")
			n.expect(t, 2, "pass --yes", "observers", "accept", "orders")
			n.expect(t, 0, "orders: renamed the keys of 50 of 50 rows: ", "observers", "accept", "orders", "--yes")
			n.expect(t, 0, "orders: was accepted already", "observers", "accept", "orders", "--yes")
			// A node of an earlier version, which would rename all of them, must not poll.
			n.holds(t, "SELECT count(*) FROM obs_cursor WHERE query_fingerprint LIKE '%_-normal-keys'", "1")
			n.expect(t, 0, " 50 events written", "poll", "orders", "--once")
			n.expect(t, 0, "orders: has refused nothing", "observers", "accept", "orders", "--yes")
			widen("14,4")
			n.expect(t, 0, " 50 events written", "poll", "orders", "--once")
			n.holds(t, "SELECT count(*) || ' ' || max(version) || ' ' || max(key + 0) || ' ' || count(CASE WHEN key LIKE '%.%' THEN 1 END) FROM obs_observed", "50 4 50 0")
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
