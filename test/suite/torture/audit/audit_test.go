package audit_test

import (
	"database/sql/driver"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	sqlite3 "modernc.org/sqlite"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
	"github.com/observerd/observerd/test/suite/torture/audit"
	"github.com/observerd/observerd/test/suite/torture/history"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(pgtest.Wrap(m)) }

// open connects as a node does that is called a.
func open(t *testing.T, direct string) *lockdb.DB {
	t.Helper()
	if strings.HasPrefix(direct, "sqlite:") {
		return openURL(t, direct)
	}
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal("the URL of a test's database cannot be read")
	}
	query := u.Query()
	query.Set("application_name", "a")
	u.RawQuery = query.Encode()
	return openURL(t, u.String())
}

func openURL(t *testing.T, url string) *lockdb.DB {
	t.Helper()
	db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
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

// TestCommitIsWitnessed commits one event under a lease and finds all of it in
// the history, joined by its transaction.
func TestCommitIsWitnessed(t *testing.T) {
	t.Parallel()
	// In a build with the tag failpoints it is there already.
	_ = sqlite3.RegisterScalarFunction("torture_writer", 0, func(*sqlite3.FunctionContext, []driver.Value) (driver.Value, error) {
		return strconv.Itoa(os.Getpid()), nil
	})
	for name, direct := range map[string]string{"postgres": pgtest.New(t), "sqlite": "sqlite:" + filepath.Join(t.TempDir(), "c.db")} {
		t.Run(name, func(t *testing.T) { commitIsWitnessed(t, direct) })
	}
}

func commitIsWitnessed(t *testing.T, direct string) {
	t.Helper()
	db := open(t, direct)
	stream := history.Stream{Name: "orders", Type: "order", LockKey: "order-observer-poll"}
	if err := audit.Install(t.Context(), direct, []history.Stream{stream}, time.Minute); err != nil {
		t.Fatal(err)
	}
	leases := db.Leases()
	grant, err := leases.Acquire(t.Context(), lock.Request{Key: stream.LockKey, Region: "DEFAULT", TTL: time.Minute, Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, db, grant)
	if err := leases.Release(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	var run history.Run
	if err := audit.Collect(t.Context(), direct, func(writer string) string {
		return map[string]string{"a": "a", strconv.Itoa(os.Getpid()): "a"}[writer]
	}, &run); err != nil {
		t.Fatal(err)
	}
	if len(run.Steps) != 1 || len(run.Events) != 1 || len(run.Grants) != 1 || len(run.Leases) != 3 {
		t.Fatalf("%d steps, %d events, %d grants, %d changes of leases", len(run.Steps), len(run.Events), len(run.Grants), len(run.Leases))
	}
	step, event, renewed := run.Steps[0], run.Events[0], run.Leases[1]
	if step.Node != "a" || step.Holder != "a" || step.HolderTerm != grant.Term || step.Expired || !step.AllRead || step.NewSeq != 1 ||
		step.NewLow != "2026-11-21 12:00:00.000000" || step.OldLow != "" {
		t.Errorf("step %+v", step)
	}
	if strings.HasPrefix(direct, "postgres") && renewed.Xid != step.Xid {
		t.Errorf("renewal %+v, step %+v", renewed, step)
	}
	if event.Xid != step.Xid || event.N != 7 || event.Shape != "n" || renewed.Node != "a" {
		t.Errorf("event %+v and renewal %+v, step %+v", event, renewed, step)
	}
	if run.Grants[0].Fence != grant.Fence || renewed.OldTerm != grant.Term || run.Leases[2].NewTerm != "" {
		t.Errorf("grant %+v, leases %+v", run.Grants[0], run.Leases)
	}
}

func commit(t *testing.T, db *lockdb.DB, grant lock.Grant) {
	t.Helper()
	store := db.Store(grant)
	cursor, err := store.Cursor(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	ch := observer.Chunk{
		Before: cursor, CommitID: uuid.New(),
		New: []observer.Observed{{Key: "o-1", Hash: []byte("h"), Version: 1}},
		Events: []events.Event{{
			ID: uuid.New(), Stream: "orders", Seq: 1, Type: "t", Subject: "o-1", Version: 1, Change: events.ChangeNew,
			Time: time.Now(), Data: []byte(`{"n":7}`),
		}},
		Generation: &observer.Generation{Reading: "all rows", Complete: true, StartedAt: time.Now()},
	}
	cursor.Low, cursor.Newest = "2026-11-21 12:00:00.000000", "2026-11-21 12:00:00.000000"
	ch.Advance(cursor)
	if _, err := store.Commit(t.Context(), ch); err != nil {
		t.Fatal(err)
	}
}
