package sqlite_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	driver "modernc.org/sqlite"

	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// counted are the files whose polls are counted, with what is told of each action.
var counted sync.Map

// countPolls is called before any test: the driver keeps its hooks without a lock.
func countPolls() {
	driver.RegisterConnectionHook(func(conn driver.ExecQuerierContext, dsn string) error {
		counts, ok := conn.(driver.AuthorizerRegisterer)
		if !ok || !strings.Contains(dsn, "mode=ro") {
			return nil
		}
		var err error
		counted.Range(func(path, tell any) bool {
			if strings.Contains(dsn, path.(string)) {
				err = counts.RegisterAuthorizer(tell.(driver.AuthorizerFn))
			}
			return err == nil
		})
		return err
	})
}

// TestQuietPoll counts the beginnings and ends of transactions, and each SELECT that is
// prepared, those within others, too.
func TestQuietPoll(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "counted.db")
	var mu sync.Mutex
	var prepared []string
	counted.Store(path, driver.AuthorizerFn(func(action driver.AuthorizerActionCode, what, _, _, _ string) driver.AuthorizerReturnCode {
		mu.Lock()
		defer mu.Unlock()
		switch action {
		case driver.AuthTransaction:
			prepared = append(prepared, what)
		case driver.AuthSelect:
			prepared = append(prepared, "SELECT")
		}
		return driver.AuthorizerOK
	}))
	writer := openWriter(t, path)
	exec(t, writer, "CREATE TABLE events (id INTEGER PRIMARY KEY, at TEXT NOT NULL); INSERT INTO events VALUES (1, '2024-05-01 10:00:00'); CREATE INDEX events_at ON events (at, id)")
	sourcetest.QuietPolls(t, open(t, sqlite.Options{URL: "sqlite:" + path}), events(), 0, 13, func() sourcetest.Sent {
		mu.Lock()
		defer mu.Unlock()
		defer func() { prepared = nil }()
		return sourcetest.Sent{Statements: prepared}
	})
}
