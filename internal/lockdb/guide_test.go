package lockdb_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// guideGrants are the rights that the guide of the migration gives a node.
func guideGrants(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/migration-from-spring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`GRANT (.*) TO observerd;`).FindAllSubmatch(text, -1) {
		all = append(all, string(m[1]))
	}
	if len(all) < 3 {
		t.Fatalf("the guide has %d grants", len(all))
	}
	return all
}

// TestSweepsAndAccountsNeedTheRightsOfTheGuide works with a role that has no
// others.
func TestSweepsAndAccountsNeedTheRightsOfTheGuide(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	if err := open(t, url).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	role := pgtest.NewRole(t, url, guideGrants(t)...)
	refused(t, role, `CREATE TABLE mine (id INTEGER)`)
	refused(t, role, `TRUNCATE obs_sweep`)
	db := open(t, role)
	s := db.Store(acquire(t, db, "order-observer-poll"))
	c := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2))
	sweep := startSweep(t, db, "orders", observer.SweepBackfill)
	for _, n := range sizes {
		c = mustCommit(t, s, step(c, n, sweep.ID, "2021"))
	}
	a := lockdb.Account{ID: "erp/reader", Salt: []byte{1}, Digest: []byte{1}}
	refuse(t, db, a)
	acts := []func() error{
		func() error { return db.Sweeps().Cancel(t.Context(), sweep.ID, by("bob")) },
		func() error { _, err := db.Report(t.Context(), nil); return err },
		func() error { _, err := general(db).Stats(t.Context(), "LOCKS", 1); return err },
		func() error {
			return general(db).NoteFailures(t.Context(), []lock.Failure{{Region: "LOCKS", Key: "page:1", Count: 1}})
		},
		func() error {
			_, err := db.Operations().Resume(t.Context(), "orders", by("alice"), a.ID)
			return err
		},
		func() error {
			return db.Operations().Reset(t.Context(), "orders", by("bob"), lockdb.ResetOptions{KeepCursor: true})
		},
		func() error { return db.Operations().Reset(t.Context(), "orders", by("bob"), lockdb.ResetOptions{}) },
		func() error { _, err := db.Clean(t.Context(), retention()); return err },
	}
	for i, act := range acts {
		if err := act(); err != nil {
			t.Errorf("act %d: %v", i, err)
		}
	}
	if n := count(t, pgtest.NewRole(t, url, "SELECT ON int_lock, obs_active_locks, obs_lock_stats"), `SELECT count(*) FROM obs_lock_stats`); n != 1 {
		t.Errorf("a role that may read the views sees %d locks, want the one that was not to be had", n)
	}
	checkMissing(t, role)
	checkMissing(t, pgtest.NewRole(t, url, "SELECT ON ALL TABLES IN SCHEMA public"), "UPDATE on obs_sweep", "DELETE on obs_account")
}

// checkMissing asks an examination for the rights that the role lacks: none, or
// these among others.
func checkMissing(t *testing.T, role string, want ...string) {
	t.Helper()
	found, err := examine.Run(t.Context(), examine.Options{URL: role})
	if err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 && len(found.Role.Missing) > 0 {
		t.Errorf("the role lacks %q", found.Role.Missing)
	}
	for _, right := range want {
		if !slices.Contains(found.Role.Missing, right) {
			t.Errorf("%q is not among the missing rights %q", right, found.Role.Missing)
		}
	}
}
