package lockdb_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(pgtest.Wrap(m))
}

// dialects make a migrated database each. Spring Integration 7 keeps the expiry in
// the row.
var dialects = map[string]func(*testing.T) string{
	"sqlite":                      func(t *testing.T) string { return lockdbtest.SQLite(t) },
	"postgres":                    newPostgres,
	"postgres with EXPIRED_AFTER": withExpiry,
}

// onBoth runs a test on a migrated database of each dialect.
func onBoth(t *testing.T, test func(t *testing.T, db *lockdb.DB, url string)) {
	t.Helper()
	for dialect, url := range dialects {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			where := url(t)
			db := open(t, where)
			if err := db.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			test(t, db, where)
		})
	}
}

// open opens a database as one more process would.
func open(t *testing.T, url string) *lockdb.DB {
	t.Helper()
	db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// requestTTL is so long that no lease ends because the machine is slow: [expire] ends it.
const requestTTL = 5 * time.Minute

func request(key string) lock.Request {
	return lock.Request{Key: key, Region: "DEFAULT", TTL: requestTTL, Name: key, Node: "node-a"}
}

func by(actor string) lockdb.By { return lockdb.By{Actor: actor} }

func acquire(t *testing.T, db *lockdb.DB, key string) lock.Grant {
	t.Helper()
	g, err := db.Leases().Acquire(t.Context(), request(key))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// date makes the row of that client one that was written so far ahead of the
// database's clock, as it is after that clock went back.
func date(t *testing.T, url, client string, ahead time.Duration) {
	t.Helper()
	expiry := ""
	if db, dialect := raw(t, url); dialect == "postgres" && hasExpiry(t.Context(), t, db) {
		expiry = fmt.Sprintf(`, expired_after = expired_after - created_date + clock_timestamp() AT TIME ZONE 'UTC' + make_interval(secs => %f)`, ahead.Seconds())
	}
	exec(t.Context(), t, url, map[string]string{
		"sqlite":   fmt.Sprintf(`UPDATE int_lock SET created_date = strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', '%+f seconds') WHERE client_id = ?1`, ahead.Seconds()),
		"postgres": fmt.Sprintf(`UPDATE int_lock SET created_date = clock_timestamp() AT TIME ZONE 'UTC' + make_interval(secs => %f)%s WHERE client_id = $1`, ahead.Seconds(), expiry),
	}, client)
}

// dateHold is date for a lock that is shared, with its row of INT_LOCK.
func dateHold(t *testing.T, url string, g lock.Grant, ahead time.Duration) {
	t.Helper()
	exec(t.Context(), t, url, map[string]string{
		"sqlite":   fmt.Sprintf(`UPDATE obs_hold SET touched_at = strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', '%+f seconds') WHERE term = ?1`, ahead.Seconds()),
		"postgres": fmt.Sprintf(`UPDATE obs_hold SET touched_at = clock_timestamp() + make_interval(secs => %f) WHERE term = $1`, ahead.Seconds()),
	}, g.Term)
	date(t, url, groupOf(t, url, g), ahead)
}

// groupOf returns the client in the row of INT_LOCK of a lease that is shared.
func groupOf(t *testing.T, url string, g lock.Grant) string {
	t.Helper()
	var group string
	db, dialect := raw(t, url)
	query := map[string]string{"sqlite": `SELECT group_term FROM obs_hold WHERE term = ?1`, "postgres": `SELECT group_term FROM obs_hold WHERE term = $1`}
	if err := db.QueryRowContext(t.Context(), query[dialect], g.Term).Scan(&group); err != nil {
		t.Fatal(err)
	}
	return group
}

// expire ages a lease past its TTL, as if its holder had slept.
func expire(ctx context.Context, t *testing.T, url string, g lock.Grant) {
	t.Helper()
	if !g.Mode.Alone() {
		exec(ctx, t, url, map[string]string{
			"sqlite":   `UPDATE obs_hold SET touched_at = '2000-01-01 00:00:00.000000' WHERE term = ?1`,
			"postgres": `UPDATE obs_hold SET touched_at = '2000-01-01' WHERE term = $1`,
		}, g.Term)
		return
	}
	expireRow(ctx, t, url, g.Term)
}

// expireRow ages the row of INT_LOCK of that client.
func expireRow(ctx context.Context, t *testing.T, url, client string) {
	t.Helper()
	exec(ctx, t, url, map[string]string{
		"sqlite":   `UPDATE int_lock SET created_date = '2000-01-01 00:00:00.000000' WHERE client_id = ?1`,
		"postgres": `UPDATE int_lock SET created_date = '2000-01-01' WHERE client_id = $1`,
	}, client)
	db, dialect := raw(t, url)
	if dialect == "postgres" && hasExpiry(ctx, t, db) {
		exec(ctx, t, url, map[string]string{"postgres": `UPDATE int_lock SET expired_after = '2000-01-01' WHERE client_id = $1`}, client)
	}
}
