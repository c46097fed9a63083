package lockdb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/springtest"
)

// contest is a table of counters, one for each lock. The holder of the lock
// reads the counter and writes it back, plus one: two at a time lose an
// increment.
type contest struct {
	url      string
	locks    []string
	sections int // of each contestant
	db       *sql.DB
	// perRow tells that INT_LOCK has EXPIRED_AFTER.
	perRow bool
	work   sync.WaitGroup

	inside, overlaps, entered [2]atomic.Int64 // for each lock
	fences                    [2][]int64      // of our sections, in order; guarded by the lock itself
	bySpring, byOurs, died    atomic.Int64
	retried                   atomic.Int64
}

func newContest(t *testing.T, where string, sections int) *contest {
	t.Helper()
	c := &contest{url: where, sections: sections, locks: []string{"order-observer-poll", "wes-observer-poll"}}
	c.db, _ = raw(t, where)
	c.db.SetMaxOpenConns(len(c.locks) + 1)
	c.perRow = hasExpiry(t.Context(), t, c.db)
	exec(t.Context(), t, where, map[string]string{"postgres": `
		CREATE TABLE counter (lock INTEGER PRIMARY KEY, n BIGINT NOT NULL);
		INSERT INTO counter VALUES (0, 0), (1, 0)`})
	return c
}

// section is what a lock protects. A lock never has two sections at a time.
func (c *contest) section(t *testing.T, which int) {
	if c.inside[which].Add(1) != 1 {
		c.overlaps[which].Add(1)
	}
	var n int64
	err := c.db.QueryRowContext(t.Context(), `SELECT n FROM counter WHERE lock = $1`, which).Scan(&n)
	if err == nil {
		_, err = c.db.ExecContext(t.Context(), `UPDATE counter SET n = $2 WHERE lock = $1`, which, n+1)
	}
	if err != nil {
		t.Errorf("work in a section: %v", err)
	}
	c.entered[which].Add(1)
	c.inside[which].Add(-1)
}

func (c *contest) spring(t *testing.T, g springtest.Generation) springtest.Options {
	t.Helper()
	return springtest.Options{URL: c.url, Generation: g, TTL: contestTTL}
}

// springs is an application with Spring. One that dies starts again under
// another client id.
func (c *contest) springs(t *testing.T, o springtest.Options, seed int) {
	var registry *springtest.Registry
	var repository *springtest.Repository
	start := func() {
		var err error
		if repository, err = springtest.NewRepository(o); err != nil {
			t.Error(err)
		}
		registry = springtest.NewRegistry(repository)
	}
	end := func() {
		c.retried.Add(registry.Retried())
		if err := repository.Disconnect(); err != nil {
			t.Error(err)
		}
	}
	start()
	defer func() { end() }()
	for i := 0; i < c.sections && !t.Failed(); i++ {
		which := (i + seed) % len(c.locks)
		name := c.locks[which]
		if !c.springWins(t, registry, name) {
			return
		}
		if (i+seed)%29 == 0 {
			c.die(t, o.Generation.Key(name), repository.ID())
			end()
			start()
			continue
		}
		c.section(t, which)
		c.bySpring.Add(1)
		if err := registry.Unlock(t.Context(), name); err != nil {
			t.Errorf("unlock: %v", err)
		}
	}
}

func (c *contest) springWins(t *testing.T, registry *springtest.Registry, name string) bool {
	for {
		won, err := registry.TryLock(t.Context(), name, 5*time.Second)
		if err != nil {
			t.Errorf("lock: %v", err)
			return false
		}
		if won || t.Failed() {
			return won
		}
	}
}

// ours is a node of ours.
func (c *contest) ours(t *testing.T, db *lockdb.DB, seed int) {
	keeper := lock.NewKeeper(lock.KeeperOptions{Provider: db.Leases()})
	defer func() {
		if err := keeper.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close the keeper: %v", err)
		}
	}()
	for i := 0; i < c.sections && !t.Failed(); i++ {
		which := (i + seed) % len(c.locks)
		r := lock.Request{
			Key: lockdb.Key(lockdb.KeySpring, c.locks[which]), Region: "DEFAULT", TTL: contestTTL,
			Name: c.locks[which], Node: fmt.Sprintf("node-%d", seed),
		}
		if (i+seed)%29 == 0 {
			c.nodeDies(t, db, r)
			continue
		}
		lease, err := c.wins(t, keeper, r)
		if err != nil {
			t.Errorf("acquire: %v", err)
			return
		}
		c.fences[which] = append(c.fences[which], lease.Fence())
		c.section(t, which)
		c.byOurs.Add(1)
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	}
}

func (c *contest) wins(t *testing.T, keeper *lock.Keeper, r lock.Request) (*lock.Lease, error) {
	for {
		lease, err := keeper.AcquireWithin(t.Context(), r, 5*time.Second)
		if !errors.Is(err, lock.ErrHeld) || t.Failed() {
			return lease, err
		}
	}
}

// nodeDies takes a lock and never releases it.
func (c *contest) nodeDies(t *testing.T, db *lockdb.DB, r lock.Request) {
	for !t.Failed() {
		g, err := db.Leases().Acquire(t.Context(), r)
		if err == nil {
			c.die(t, r.Key, g.Term)
			return
		}
		if !errors.Is(err, lock.ErrHeld) {
			t.Errorf("acquire: %v", err)
			return
		}
		select {
		case <-t.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// die lets a lock expire whose holder is gone.
func (c *contest) die(t *testing.T, key, term string) {
	c.died.Add(1)
	expire := `UPDATE int_lock SET created_date = '2000-01-01' WHERE lock_key = $1 AND client_id = $2`
	if c.perRow {
		expire = `UPDATE int_lock SET expired_after = '2000-01-01' WHERE lock_key = $1 AND client_id = $2`
	}
	if _, err := c.db.ExecContext(t.Context(), expire, key, term); err != nil {
		t.Errorf("let a lock expire: %v", err)
	}
}

func (c *contest) judge(t *testing.T, db *lockdb.DB) {
	t.Helper()
	for which := range c.locks {
		if n := c.overlaps[which].Load(); n != 0 {
			t.Errorf("%s: %d sections began within another", c.locks[which], n)
		}
		var n int64
		if err := c.db.QueryRowContext(t.Context(), `SELECT n FROM counter WHERE lock = $1`, which).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != c.entered[which].Load() {
			t.Errorf("%s: %d sections have counted to %d: the rest was lost to an overlap", c.locks[which], c.entered[which].Load(), n)
		}
		for i := 1; i < len(c.fences[which]); i++ {
			if c.fences[which][i] <= c.fences[which][i-1] {
				t.Errorf("%s: fence %d was given after %d", c.locks[which], c.fences[which][i], c.fences[which][i-1])
			}
		}
	}
	left, _, err := db.Leases().Locks(t.Context(), nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sections of Spring, %d of ours, %d deaths, %d retries of Spring, %d rows left",
		c.bySpring.Load(), c.byOurs.Load(), c.died.Load(), c.retried.Load(), len(left))
	least := int64(contestants * c.sections * 9 / 10)
	if !t.Failed() && (c.bySpring.Load() < least || c.byOurs.Load() < least || c.died.Load() == 0) {
		t.Error("the contest was not fought")
	}
}
