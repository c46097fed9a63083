package lockdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/springtest"
)

// shared is the lock of these tests; shareTTL is its TTL on both sides.
const (
	shared   = "order-observer-poll"
	shareTTL = time.Minute
)

// couple is a node of ours and an application with Spring on one table.
type couple struct {
	t      *testing.T
	url    string
	db     *lockdb.DB
	spring *springtest.Repository
	key    string
	// ahead is how far the application's clock runs ahead.
	ahead time.Duration
	// cursor is what our node read under its lease.
	cursor observer.Cursor
}

// couples runs a test for each generation.
func couples(t *testing.T, test func(c *couple, g springtest.Generation)) {
	t.Helper()
	for _, g := range springtest.Generations() {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			test(newCouple(t, springtest.Options{Generation: g, TTL: shareTTL}), g)
		})
	}
}

func newCouple(t *testing.T, o springtest.Options) *couple {
	t.Helper()
	c := &couple{t: t, key: lockdb.Key(lockdb.KeySpring, shared)}
	c.db, c.url = springDB(t, o.Generation)
	o.URL, o.Clock = c.url, func() time.Time { return time.Now().Add(c.ahead) }
	var err error
	if c.spring, err = springtest.NewRepository(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.spring.Disconnect(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *couple) request(ttl time.Duration) lock.Request {
	return lock.Request{Key: c.key, Region: "DEFAULT", TTL: ttl, Name: shared, Node: "ours"}
}

func (c *couple) oursTakes() lock.Grant {
	c.t.Helper()
	g, err := c.db.Leases().Acquire(c.t.Context(), c.request(shareTTL))
	if err != nil {
		c.t.Fatal(err)
	}
	c.cursor = cursorOf(c.t, c.db.Store(g), "orders")
	return g
}

func (c *couple) oursIsRefused(ttl time.Duration) lock.HeldError {
	c.t.Helper()
	_, err := c.db.Leases().Acquire(c.t.Context(), c.request(ttl))
	var held *lock.HeldError
	if !errors.As(err, &held) {
		c.t.Fatalf("our acquisition of a lock that Spring holds: %v", err)
	}
	return *held
}

func (c *couple) springTries() bool {
	c.t.Helper()
	acquired, err := c.spring.Acquire(c.t.Context(), c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return acquired
}

// ages lets time pass for a row: what it says moves into the past.
func (c *couple) ages(term string, by time.Duration) {
	c.t.Helper()
	db, _ := raw(c.t, c.url)
	set := `created_date = created_date - make_interval(secs => $2)`
	if hasExpiry(c.t.Context(), c.t, db) {
		set += `, expired_after = expired_after - make_interval(secs => $2)`
	}
	exec(c.t.Context(), c.t, c.url, map[string]string{"postgres": `UPDATE int_lock SET ` + set + ` WHERE client_id = $1`}, term, by.Seconds())
}

// checkEnded checks that a grant of ours is of no use any more.
func (c *couple) checkEnded(g lock.Grant) {
	c.t.Helper()
	if r, err := c.db.Leases().Renew(c.t.Context(), []lock.Grant{g}); err != nil || r[0] != lock.Lost {
		c.t.Errorf("our lease is renewed after its end: %v, %v", r, err)
	}
	if _, err := c.db.Store(g).Commit(c.t.Context(), chunk(c.cursor, 3)); !errors.Is(err, lock.ErrFenced) {
		c.t.Errorf("a commit after the end of our lease: %v", err)
	}
	if n := count(c.t, c.url, `SELECT count(*) FROM obs_event`); n != 0 {
		c.t.Errorf("%d events were written after the end of our lease", n)
	}
	if err := c.db.Leases().Release(c.t.Context(), g); !errors.Is(err, lock.ErrLost) {
		c.t.Errorf("our lease is given back after its end: %v", err)
	}
}
