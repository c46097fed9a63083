package lockdb_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// hold locks a file, as a process does that lives.
func hold(t *testing.T, path string) (unlock func()) {
	t.Helper()
	f := flock.New(path)
	if locked, err := f.TryLock(); err != nil || !locked {
		t.Fatal(locked, err)
	}
	return func() { _ = f.Close() }
}

// keeps acquires a lock through the watcher's keeper, which renews it.
func (w *watcher) keeps(t *testing.T, key string, ttl time.Duration) *lock.Lease {
	t.Helper()
	r := request(key)
	r.TTL = ttl
	l, err := w.keeper.Acquire(context.WithoutCancel(t.Context()), r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stands fails the test unless the lease is the holder's still.
func stands(t *testing.T, url string, l *lock.Lease) {
	t.Helper()
	if l.Context().Err() != nil {
		t.Fatalf("the lease ended: %v", context.Cause(l.Context()))
	}
	if n := count(t, url, `SELECT count(*) FROM int_lock WHERE client_id = '`+l.Grant().Term+`'`); n != 1 {
		t.Fatal("the lease was taken from a healthy node")
	}
}

const livenessSessions = `FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '% liveness'`

// shownSessions are those that show a node.
const shownSessions = `FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// A healthy node must not be judged because the machine is busy. Its renewals
// wait for the disk, and the looks of a judge do not; so these nodes do not wait
// for it, and a judge takes longer than a machine stands still.
var lazily = url.Values{"synchronous_commit": {"off"}}

func unhurried(o *liveness.Options) { o.Absence = 10 * time.Second }

func TestBlipOfTheSessionCostsNoLease(t *testing.T) {
	t.Parallel()
	where := with(t, newPostgres(t), lazily)
	healthy := watch(t, where)
	lease := healthy.keeps(t, heldByProcess, never)
	judge := watch(t, where, unhurried)
	for range 10 {
		ended := 0
		eventually(t, func() error {
			ended = count(t, where, `SELECT coalesce(max(pid), 0) FROM (SELECT pid `+shownSessions+` ORDER BY random() LIMIT 1) AS one WHERE pg_terminate_backend(pid)`)
			if ended == 0 {
				return errors.New("no session was ended")
			}
			return nil
		})
		eventually(t, func() error {
			if n := count(t, where, fmt.Sprint(`SELECT count(*) `, shownSessions, ` AND pid <> `, ended)); n != 2 {
				return fmt.Errorf("%d nodes show themselves", n)
			}
			return nil
		})
		stands(t, where, lease)
	}
	if healthy.logged("Others cannot see this node; coming back")+judge.logged("Others cannot see this node; coming back") == 0 {
		t.Error("nobody noticed: the test proves nothing")
	}
}

func TestRestartOfTheServerCostsNoLease(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	url := server.URL("postgres")
	if err := open(t, url).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const age = 10 * time.Second // Enough for two attempts to be seen again.
	old := func(o *liveness.Options) { o.Age = age }
	var nodes []*watcher
	var leases []*lock.Lease
	for _, key := range []string{"order", "inventory", "wes"} {
		w := watch(t, url, old)
		nodes = append(nodes, w)
		leases = append(leases, w.keeps(t, key, time.Minute))
	}
	for _, mode := range []pgtest.Mode{pgtest.Fast, pgtest.Immediate} {
		if err := server.Stop(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			for _, w := range nodes {
				if w.sees() {
					return errors.New("a node has not noticed")
				}
			}
			return nil
		})
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Until every node judges again, and has had the time to.
		for _, w := range nodes {
			eventually(t, func() error {
				if !w.sees() {
					return errors.New("a node does not come back")
				}
				return nil
			})
		}
		<-time.After(age + 2*time.Second)
		for _, l := range leases {
			stands(t, url, l)
		}
	}
	for _, w := range nodes {
		if n := w.logged("Lease freed"); n != 0 {
			t.Errorf("%d leases were freed", n)
		}
	}
}

// TestRenewalsStandInForTheSession lets no new connection of a node in, so that
// its liveness session cannot come back, while the others go on.
func TestRenewalsStandInForTheSession(t *testing.T) {
	t.Parallel()
	admin := newPostgres(t)
	limited := with(t, pgtest.NewRole(t, admin, "ALL ON ALL TABLES IN SCHEMA public", "ALL ON ALL SEQUENCES IN SCHEMA public"), lazily)
	const patience = 8 * time.Second
	healthy := watch(t, limited, func(o *liveness.Options) { o.Patience = patience })
	lease := healthy.keeps(t, heldByProcess, never)
	judge := watch(t, admin, unhurried)
	parsed, err := url.Parse(limited)
	if err != nil {
		t.Fatal(err)
	}
	role := parsed.User.Username()
	exec(t.Context(), t, admin, map[string]string{"postgres": `ALTER ROLE "` + role + `" CONNECTION LIMIT 1`})
	began := time.Now()
	if n := count(t, admin, `SELECT count(pg_terminate_backend(pid)) `+livenessSessions+` AND usename = '`+role+`'`); n != 1 {
		t.Fatal("no session was ended")
	}
	marked := func() int { return count(t, admin, `SELECT count(*) FROM obs_lock WHERE liveness = 'session'`) }
	eventually(t, func() error {
		stands(t, admin, lease)
		if marked() != 0 {
			return errors.New("the node counts as one that can be judged")
		}
		return nil
	})
	if d := time.Since(began); d < patience/2 {
		t.Errorf("the node gave up after %s", d)
	}
	if healthy.sees() || judge.logged("Lease freed") != 0 {
		t.Error("the node was seen, or judged")
	}
	exec(t.Context(), t, admin, map[string]string{"postgres": `ALTER ROLE "` + role + `" CONNECTION LIMIT -1`})
	eventually(t, func() error {
		if marked() != 1 {
			return errors.New("the node does not count as one that can be judged again")
		}
		return nil
	})
	stands(t, admin, lease)
}

// TestPoolerSwitchesLivenessOff covers a pooler in transaction mode, which
// shows itself when the session is opened, or later.
func TestPoolerSwitchesLivenessOff(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"at once": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := newPostgres(t)
			judge := watch(t, url)
			pooled := watchAs(t, url, "pooled", eager)
			pooled.db.ShareASession(later)
			lease := pooled.keeps(t, heldByProcess, never)
			h := holdElsewhere(t, url, never, "wes-observer-poll")
			pooled.live.Start(t.Context())
			eventually(t, func() error {
				if pooled.logged("level=WARN", "Liveness is switched off") != 1 {
					return errors.New("nothing is said of the pooler")
				}
				return nil
			})
			h.kill()
			eventually(t, func() error {
				if !judge.live.Gone(h.boot) {
					return errors.New("nobody judges")
				}
				return nil
			})
			stands(t, url, lease)
			if pooled.sees() || pooled.live.Gone(h.boot) || pooled.logged("Lease freed") != 0 {
				t.Error("a node that cannot be judged judges others")
			}
			if n := count(t, url, `SELECT count(*) FROM obs_lock WHERE boot_id = 'pooled' AND liveness <> ''`); n != 0 {
				t.Error("the node's lease can be judged")
			}
		})
	}
}
