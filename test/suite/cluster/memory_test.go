package cluster_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx".
	_ "modernc.org/sqlite"             // The driver "sqlite".

	"github.com/observerd/observerd/test/kit/pgtest"
)

// memory is a coordination database, looked at from beside the nodes.
type memory struct {
	url, dialect string
	db           *sql.DB
}

// onBoth runs a story on an empty coordination database of each dialect.
func onBoth(t *testing.T, story func(t *testing.T, m memory)) {
	t.Helper()
	for dialect, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "observerd.db") },
		"postgres": func(t *testing.T) string { return pgtest.New(t) },
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			story(t, remember(t, url(t)))
		})
	}
}

// remember opens a coordination database beside the nodes.
func remember(t *testing.T, url string) memory {
	t.Helper()
	m := memory{url: url, dialect: "postgres"}
	driver, dsn := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		m.dialect, driver, dsn = "sqlite", "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
	}
	m.db = openSQL(t, driver, dsn)
	return m
}

func openSQL(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(2)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// ttl is the shortest that the configuration allows.
func (m memory) ttl() time.Duration {
	if m.dialect == "sqlite" {
		return 15 * time.Second
	}
	return 3 * time.Second
}

// made reports whether the file of an SQLite database is there. Before its node
// has made it, nobody else should.
func (m memory) made() bool {
	path, ok := strings.CutPrefix(m.url, "sqlite:")
	if !ok {
		return true
	}
	_, err := os.Stat(path)
	return err == nil
}

// errNotMade reports a coordination database that no node has made yet.
var errNotMade = errors.New("the coordination database is not there yet")

// visit reads the rows of a query.
func (m memory) visit(t *testing.T, query string, row func(scan func(...any) error) error) error {
	t.Helper()
	if !m.made() {
		return errNotMade
	}
	rows, err := m.db.QueryContext(t.Context(), query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// number returns the one number of a query.
func (m memory) number(t *testing.T, query string) (n int64, err error) {
	t.Helper()
	err = m.visit(t, query, func(scan func(...any) error) error { return scan(&n) })
	return n, err
}

// becomes waits until the number of a query is not 0.
func (m memory) becomes(t *testing.T, query string) {
	t.Helper()
	eventually(t, func() error {
		n, err := m.number(t, query)
		if err == nil && n == 0 {
			err = errNothingYet
		}
		return err
	})
}

// exec changes something behind the back of the nodes.
func (m memory) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := m.db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// polling counts the types whose lock the node holds; of all nodes, if it has
// no name. LOCK_KEY is padded with spaces.
func (m memory) polling(t *testing.T, node string) (int64, error) {
	t.Helper()
	return m.number(t, `
		SELECT count(*)
		  FROM int_lock l
		  LEFT JOIN obs_lock o ON o.term = l.client_id
		 WHERE l.lock_key LIKE '%-observer-poll%' AND (o.node = '`+node+`' OR '`+node+`' = '')`)
}

// held counts all locks of a node, those of sinks too.
func (m memory) held(t *testing.T, node string) (int64, error) {
	t.Helper()
	return m.number(t, `
		SELECT count(*) FROM int_lock l JOIN obs_lock o ON o.term = l.client_id WHERE o.node = '`+node+`'`)
}
