package lockdb_test

import (
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/springtest"
)

// contestants is how many of each side fight a contest.
const contestants = 4

// contestTTL is so long that no client loses a lock because the machine is slow.
// Leases that end are made to end.
const contestTTL = 2 * time.Minute

// TestSpringAndOursExcludeEachOther lets applications with each generation of
// Spring Integration and nodes of ours contend for the same locks on one table.
// Every so often a holder dies with its lock, which then expires.
func TestSpringAndOursExcludeEachOther(t *testing.T) {
	t.Parallel()
	contend(t, 30)
}

// contend runs the contests. Each contestant enters so many sections.
func contend(t *testing.T, sections int) {
	t.Helper()
	for name, test := range map[string]struct {
		springs []springtest.Generation
		// ours is added to the URL of our nodes.
		ours url.Values
	}{
		"spring5":                     {springs: []springtest.Generation{springtest.Spring5}},
		"spring6":                     {springs: []springtest.Generation{springtest.Spring6}},
		"spring5 and spring6":         {springs: []springtest.Generation{springtest.Spring5, springtest.Spring6}},
		"spring7":                     {springs: []springtest.Generation{springtest.Spring7}},
		"spring5, all is serialized":  {springs: []springtest.Generation{springtest.Spring5}, ours: url.Values{"default_transaction_isolation": {"serializable"}}},
		"spring7, ours is serialized": {springs: []springtest.Generation{springtest.Spring7}, ours: url.Values{"default_transaction_isolation": {"serializable"}}},
	} {
		// One after the other: each needs a third of the server's connections.
		t.Run(name, func(t *testing.T) {
			db, where := springDB(t, test.springs[0])
			c := newContest(t, where, sections)
			for n := range contestants {
				spring := c.spring(t, test.springs[n%len(test.springs)])
				c.work.Go(func() { c.springs(t, spring, n) })
			}
			for n := range contestants {
				node := quiet(t, with(t, where, test.ours))
				if err := node.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.work.Go(func() { c.ours(t, node, n) })
			}
			c.work.Wait()
			c.judge(t, db)
		})
	}
}

// quiet opens a node that logs nothing: it would report each takeover.
func quiet(t *testing.T, where string, with ...func(*lockdb.Options)) *lockdb.DB {
	t.Helper()
	o := lockdb.Options{URL: where, PoolSize: 2, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range with {
		f(&o)
	}
	db, err := lockdb.Open(o)
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

// with adds parameters to a URL.
func with(t *testing.T, where string, more url.Values) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	for name, values := range more {
		query[name] = values
	}
	u.RawQuery = query.Encode()
	return u.String()
}
