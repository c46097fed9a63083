package lockdb_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/springtest"
)

const dml = "SELECT, INSERT, UPDATE, DELETE ON "

// TestNothingHangsOnSpringsTable compares the catalogue before our migrations
// and after a node has done all that nodes do.
func TestNothingHangsOnSpringsTable(t *testing.T) {
	t.Parallel()
	for _, g := range springtest.Generations() {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			where := pgtest.New(t)
			exec(t.Context(), t, where, map[string]string{"postgres": g.Table()})
			pgtest.NewRole(t, where, dml+"int_lock") // So that there are grants to be kept.
			before := catalogue(t, where)
			works(t, where)
			after := catalogue(t, where)
			if before != after {
				t.Errorf("the catalogue says of INT_LOCK\n%s\nand before us\n%s", after, before)
			}
			// The comparison can fail: an index is seen.
			exec(t.Context(), t, where, map[string]string{"postgres": `CREATE INDEX ON int_lock (created_date)`})
			if catalogue(t, where) == before {
				t.Error("an index that was added is not noticed")
			}
		})
	}
}

func catalogue(t *testing.T, where string) string {
	t.Helper()
	text, err := springtest.Catalogue(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `"int_lock"`) {
		t.Fatalf("that is no description of the table: %s", text)
	}
	return text
}

// works does what a node does: it migrates, shows itself, takes locks, also an
// expired one, renews, commits, notes turns, sweeps, and gives back.
func works(t *testing.T, where string) {
	t.Helper()
	w := watch(t, where)
	if err := w.db.Nodes().Beat(t.Context(), turn.Node{BootID: w.boot, Name: "ours"}); err != nil {
		t.Fatal(err)
	}
	lost := acquire(t, w.db, "wes-observer-poll")
	expire(t.Context(), t, where, lost)
	acquire(t, w.db, "wes-observer-poll")
	lease, err := w.keeper.Acquire(t.Context(), request(lockdb.Key(lockdb.KeySpring, shared)))
	if err != nil {
		t.Fatal(err)
	}
	g := lease.Grant()
	if r, err := w.db.Leases().Renew(t.Context(), []lock.Grant{g}); err != nil || r[0] != lock.Renewed {
		t.Fatalf("renew: %v, %v", r, err)
	}
	s := w.db.Store(g)
	for _, n := range []int{3, 2500} { // a statement, and COPY
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), n))
	}
	if _, _, err := w.db.Leases().Locks(t.Context(), nil, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Clean(t.Context(), retention()); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.quit()
}

// TestSpringNeedsRightsOnItsTableAlone lets an application work whose role may
// do nothing else, beside a node of ours.
func TestSpringNeedsRightsOnItsTableAlone(t *testing.T) {
	t.Parallel()
	for _, g := range springtest.Generations() {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			db, where := springDB(t, g)
			theirs := pgtest.NewRole(t, where, dml+"int_lock")
			c := &couple{t: t, url: where, db: db, key: lockdb.Key(lockdb.KeySpring, shared)}
			var err error
			c.spring, err = springtest.NewRepository(springtest.Options{
				URL: theirs, Generation: g, TTL: shareTTL, Clock: func() time.Time { return time.Now().Add(c.ahead) },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.spring.Disconnect() }()
			refused(t, theirs, `SELECT count(*) FROM obs_lock`)
			c.shareAll()
		})
	}
}

// shareAll does all that an application does with a lock, before and after our
// node has held it.
func (c *couple) shareAll() {
	c.t.Helper()
	ctx := c.t.Context()
	if err := c.spring.Start(ctx); err != nil {
		c.t.Fatal(err)
	}
	for range 2 {
		ours := c.oursTakes()
		if c.springTries() {
			c.t.Fatal("Spring has taken a lock that we hold")
		}
		c.ahead = shareTTL + time.Second
		if !c.springTries() {
			c.t.Fatal("Spring has not taken our expired lock")
		}
		c.ahead = 0
		c.checkEnded(ours)
		for name, do := range map[string]func() (bool, error){
			"renew": func() (bool, error) { return c.spring.Renew(ctx, c.key) },
			"own":   func() (bool, error) { return c.spring.IsAcquired(ctx, c.key) },
		} {
			if ok, err := do(); err != nil || !ok {
				c.t.Fatalf("Spring cannot %s its lock: %v, %v", name, ok, err)
			}
		}
		c.oursIsRefused(shareTTL)
		if ok, err := c.spring.Delete(ctx, c.key); err != nil || !ok {
			c.t.Fatalf("Spring cannot give its lock back: %v, %v", ok, err)
		}
	}
	if _, err := c.spring.DeleteExpired(ctx); err != nil {
		c.t.Error(err)
	}
	if err := c.spring.Close(ctx); err != nil {
		c.t.Error(err)
	}
}

// refused checks that the role may not do that.
func refused(t *testing.T, role, statement string) {
	t.Helper()
	db, _ := raw(t, role)
	if _, err := db.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Fatalf("the role may do more than it should: %v", err)
	}
}

// TestOursNeedsNoMoreOnSpringsTable lets our nodes work with a table that is in
// a schema of others, whose owner has granted them the four rights.
func TestOursNeedsNoMoreOnSpringsTable(t *testing.T) {
	t.Parallel()
	for _, g := range springtest.Generations() {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			where := pgtest.New(t)
			exec(t.Context(), t, where, map[string]string{"postgres": `
				CREATE SCHEMA java; CREATE SCHEMA ours; SET search_path = java; ` + g.Table()})
			theirs := with(t, where, url.Values{"search_path": {"java"}})
			ours := with(t, pgtest.NewRole(t, where, "USAGE, CREATE ON SCHEMA ours", "USAGE ON SCHEMA java", dml+"java.int_lock"),
				url.Values{"search_path": {"ours,java"}})
			before := catalogue(t, theirs)
			refused(t, ours, `CREATE INDEX ON java.int_lock (created_date)`)
			w := watchAs(t, ours, uuid.NewString(), eager)
			w.live.Start(t.Context())
			a := acquire(t, w.db, "order-observer-poll")
			if r, err := w.db.Leases().Renew(t.Context(), []lock.Grant{a}); err != nil || r[0] != lock.Renewed {
				t.Fatalf("renew: %v, %v", r, err)
			}
			s := w.db.Store(a)
			mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 3))
			if _, err := w.db.Clean(t.Context(), retention()); err != nil {
				t.Error(err)
			}
			if _, err := general(w.db).Stats(t.Context(), a.Region, 1); err != nil {
				t.Errorf("figures of the locks: %v", err)
			}
			if err := w.db.Leases().Release(t.Context(), a); err != nil {
				t.Error(err)
			}
			w.quit()
			if n := count(t, where, `SELECT count(*) FROM pg_class WHERE relname = 'int_lock'`); n != 1 {
				t.Errorf("there are %d tables INT_LOCK now", n)
			}
			if after := catalogue(t, theirs); after != before {
				t.Errorf("the catalogue says of INT_LOCK\n%s\nand before us\n%s", after, before)
			}
		})
	}
}
