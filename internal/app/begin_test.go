package app_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestNobodyIsNamedToEveryone has servers that end a session before it begins,
// for reasons in whose words there are names and values. Those are for the log.
func TestNobodyIsNamedToEveryone(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	role := pgtest.NewRole(t, database)
	setting := func(name, value string) func(*url.URL) {
		return func(u *url.URL) { u.RawQuery += "&" + name + "=" + value }
	}
	closed := strings.ToLower("closed_" + rand.Text())
	db := openPostgres(t, database)
	run(t, db, `CREATE DATABASE `+closed+` ALLOW_CONNECTIONS false`)
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), `DROP DATABASE `+closed); err != nil {
			t.Error(err)
		}
	})
	for name, tc := range map[string]struct {
		change      func(*url.URL)
		words, code string
	}{
		"no connections":  {func(u *url.URL) { u.Path = "/" + closed }, "its server lets no role connect to that database", "55000"},
		"a wrong value":   {setting("statement_timeout", "unguessable"), "its server refuses a setting that is in the URL", "22023"},
		"no such setting": {setting("unguessable", "1"), "its server refuses a setting that is in the URL, or is older than PostgreSQL 12", "42704"},
		"no right to set": {setting("log_statement", "all"), "its server does not let the role make a setting", "42501"},
		"one host is down": {
			func(u *url.URL) {
				u.Host, u.User = "127.0.0.1:1,"+u.Host, url.UserPassword(u.User.Username(), "unguessable")
			},
			"the coordination database does not answer", "28P01",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := coordinated(t, role, tc.change)
			parsed, err := url.Parse(p.config.Database.URL.Reveal())
			if err != nil {
				t.Fatal(err)
			}
			user, base, secret := parsed.User.Username(), strings.TrimPrefix(parsed.Path, "/"), secretOf(parsed)
			node, log := p.startLogged(t)
			eventually(t, func() error { return tells(log.String(), tc.code, user, base) })
			for path, text := range map[string]string{
				"/": says(t, node, "/", tc.words), "/readyz": says(t, node, "/readyz", tc.words), "status line": node.Doing(),
			} {
				for _, word := range []string{user, base, secret, "127.0.0.1", "unguessable", "failed to connect"} {
					if strings.Contains(text, word) {
						t.Errorf("%s tells %q to everyone:\n%s", path, word, text)
					}
				}
			}
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log holds the password:\n%s", log.String())
			}
		})
	}
}

// TestSilentHostIsNoMistake has a server that refuses, and another one that may
// come back: the configuration may be right.
func TestSilentHostIsNoMistake(t *testing.T) {
	t.Parallel()
	p := coordinated(t, pgtest.NewRole(t, pgtest.New(t)), func(u *url.URL) {
		u.Host, u.User = "127.0.0.1:1,"+u.Host, url.UserPassword(u.User.Username(), "hunter2")
	})
	if _, err := p.operator(t).Report(t.Context()); wiring.FaultOf(err) != wiring.Unavailable {
		t.Errorf("status: fault %v of %v", wiring.FaultOf(err), err)
	}
	if _, err := admin.Doctor(t.Context(), p.config, 0); wiring.FaultOf(err) != wiring.Unavailable {
		t.Errorf("doctor: fault %v of %v", wiring.FaultOf(err), err)
	}
}

// TestDoctorOfADatabaseThatCannotBeSeen has nothing to look at. What there is to
// do is fixed where the error says, and by no right.
func TestDoctorOfADatabaseThatCannotBeSeen(t *testing.T) {
	t.Parallel()
	role := pgtest.NewRole(t, pgtest.New(t))
	refused := "its server refuses the role, its password or this host; fix that there, or correct database.url"
	garbage := setup(t, "")
	if err := os.WriteFile(garbage.config.Database.URL.Path(), []byte("these are somebody's notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		place place
		words []string
	}{
		"a wrong password": {
			coordinated(t, role, func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "hunter2") }), []string{refused, "28P01"},
		},
		"a wrong setting": {
			coordinated(t, role, func(u *url.URL) { u.RawQuery += "&options=-c%20statement_timeout%3Dnonsense" }),
			[]string{"its server refuses a setting that is in the URL; fix that there, or correct database.url", "22023"},
		},
		"no database": {garbage, []string{filepath.Join(garbage.folder, "observerd.db") + " is left as it is; name another file at database.url"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := admin.Doctor(t.Context(), tc.place.config, 0)
			if wiring.FaultOf(err) != wiring.Misconfigured || len(d.Findings) > 0 {
				t.Errorf("fault %v of %v, with the findings %+v", wiring.FaultOf(err), err, d.Findings)
			}
			for _, word := range tc.words {
				if text := fmt.Sprint(err); !strings.Contains(text, word) || strings.Contains(text, "hunter2") {
					t.Errorf("no %q in %v", word, err)
				}
			}
		})
	}
}

// TestNodeWaitsForThePromotion has a standby alone: it says so wherever it is asked,
// and works once the standby is promoted.
func TestNodeWaitsForThePromotion(t *testing.T) {
	t.Parallel()
	standby := pgtest.Start(t, pgtest.Options{}).Standby(t)
	p := setup(t, standby.URL("postgres"))
	if _, err := p.operator(t).Report(t.Context()); wiring.FaultOf(err) != wiring.Unavailable {
		t.Errorf("status: fault %v of %v", wiring.FaultOf(err), err)
	}
	node, log := p.startLogged(t)
	const words = "a standby answers, and no primary accepts the node"
	eventually(t, doing(node, "Waits for the coordination database: "+words+"; see the log"))
	says(t, node, "/readyz", words)
	says(t, node, "/", words)
	eventually(t, func() error {
		return tells(log.String(), "the server is a standby or set to read only", "name the primary in database.url")
	})
	if _, err := openPostgres(t, standby.URL("postgres")).ExecContext(t.Context(), `SELECT pg_promote()`); err != nil {
		t.Fatal(err)
	}
	ready(t, node)
	if lineWith(log.String(), `"level":"INFO","msg":"Ready"`) == "" {
		t.Errorf("the log does not say that the wait is over:\n%s", log)
	}
}
