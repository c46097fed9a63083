package lockdb_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// replicated is a primary with a standby that replays nothing any more.
type replicated struct {
	primary, standby *pgtest.Server
	role             string // the name of one that may work on both
	password         *url.Userinfo
}

func newReplicated(t *testing.T) replicated {
	t.Helper()
	r := replicated{primary: pgtest.Start(t, pgtest.Options{})}
	r.standby = r.primary.Standby(t)
	admin := r.primary.URL("postgres")
	parsed, err := url.Parse(pgtest.NewRole(t, admin, "CREATE, USAGE ON SCHEMA public"))
	if err != nil {
		t.Fatal(err)
	}
	r.password, r.role = parsed.User, parsed.User.Username()
	eventually(t, func() error {
		if count(t, r.standby.URL("postgres"), `SELECT count(*) FROM pg_roles WHERE rolname = '`+r.role+`'`) == 0 {
			return errors.New("the standby does not follow")
		}
		return nil
	})
	exec(t.Context(), t, r.standby.URL("postgres"), map[string]string{"postgres": `SELECT pg_wal_replay_pause()`})
	eventually(t, func() error {
		if count(t, r.standby.URL("postgres"), `SELECT count(*) WHERE pg_get_wal_replay_pause_state() = 'paused'`) == 0 {
			return errors.New("the standby goes on")
		}
		return nil
	})
	return r
}

// url names these servers in this order.
func (r replicated) url(t *testing.T, servers ...*pgtest.Server) string {
	t.Helper()
	return changed(t, servers[0].URL("postgres"), func(u *url.URL) {
		var hosts []string
		for _, s := range servers {
			hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
		}
		u.Host, u.User = strings.Join(hosts, ","), r.password
	})
}

// limit lets the role have so many sessions on the primary; -1 is no limit. Those
// that it has stay.
func (r replicated) limit(ctx context.Context, t *testing.T, sessions int) {
	t.Helper()
	exec(ctx, t, r.primary.URL("postgres"), map[string]string{
		"postgres": fmt.Sprintf(`ALTER ROLE %q CONNECTION LIMIT %d`, r.role, sessions),
	})
}

// onStandby counts the sessions of the role there.
func (r replicated) onStandby(t *testing.T) int {
	t.Helper()
	return count(t, r.standby.URL("postgres"), `SELECT count(*) FROM pg_stat_activity WHERE usename = '`+r.role+`'`)
}

// TestNoConnectionIsToAStandby has a primary that refuses new sessions for a
// moment, and a standby after it in the URL that answers with what was yesterday.
func TestNoConnectionIsToAStandby(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	both := r.url(t, r.primary, r.standby)
	if err := errors.Join(open(t, both).Migrate(t.Context()), open(t, both).Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	// Each returns what to do while new sessions are refused.
	for name, prepare := range map[string]func(t *testing.T) func(ctx context.Context) error{
		"a read": func(t *testing.T) func(context.Context) error { return open(t, both).Ready },
		"an acquisition": func(t *testing.T) func(context.Context) error {
			db := open(t, both)
			return func(ctx context.Context) error {
				_, err := db.Leases().Acquire(ctx, request("new"))
				return err
			}
		},
		"a renewal": func(t *testing.T) func(context.Context) error {
			g, db := acquire(t, open(t, both), "renewed"), open(t, both)
			return func(ctx context.Context) error {
				_, err := db.Leases().Renew(ctx, []lock.Grant{g})
				return err
			}
		},
		"a migration": func(t *testing.T) func(context.Context) error {
			db := open(t, changed(t, both, parameter("search_path", r.emptySchema(t))))
			if err := db.Ready(t.Context()); !errors.Is(err, sqldb.ErrPending) { // With a session that stays.
				t.Fatal(err)
			}
			return db.Migrate
		},
		"the doctor": func(*testing.T) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := examine.Run(ctx, examine.Options{URL: both})
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			act := prepare(t)
			r.limit(t.Context(), t, 0)
			defer r.limit(context.WithoutCancel(t.Context()), t, -1)
			if err := act(t.Context()); !sqldb.Unavailable(err) || !errors.Is(err, sqldb.ErrReadOnly) {
				t.Errorf("while the primary refuses new sessions: %v", err)
			}
			eventually(t, func() error {
				if n := r.onStandby(t); n != 0 {
					return fmt.Errorf("%d sessions on the standby", n)
				}
				return nil
			})
		})
	}
	t.Run("liveness", func(t *testing.T) {
		w := watchAs(t, both, "a")
		r.limit(t.Context(), t, 0)
		w.live.Start(t.Context())
		eventually(t, func() error {
			if w.logged("Others cannot see this node", sqldb.ErrReadOnly.Error()) == 0 {
				return errors.New("it is not said why")
			}
			return nil
		})
		r.limit(t.Context(), t, -1)
		eventually(t, func() error {
			if !w.sees() {
				return errors.New("it does not come back")
			}
			return nil
		})
	})
	t.Run("the standby first", func(t *testing.T) {
		acquire(t, open(t, r.url(t, r.standby, r.primary)), "behind")
	})
	t.Run("unless the URL says so", func(t *testing.T) {
		db := open(t, changed(t, r.url(t, r.standby, r.primary), parameter("target_session_attrs", "any")))
		if _, err := db.Now(t.Context()); err != nil {
			t.Error(err)
		}
		if r.onStandby(t) == 0 {
			t.Error("no session on the standby")
		}
	})
}

// emptySchema makes a schema without tables, and returns its name.
func (r replicated) emptySchema(t *testing.T) string {
	t.Helper()
	exec(t.Context(), t, r.primary.URL("postgres"), map[string]string{"postgres": fmt.Sprintf(`CREATE SCHEMA empty AUTHORIZATION %q`, r.role)})
	return "empty"
}
