package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// coordinated is a place whose coordination database is at the URL of a role.
func coordinated(t *testing.T, role string, change func(*url.URL)) place {
	t.Helper()
	parsed, err := url.Parse(role)
	if err != nil {
		t.Fatal(err)
	}
	change(parsed)
	return setup(t, parsed.String())
}

// TestCoordinationDatabaseThatLetsNobodyIn has a wrong password and a missing
// database: commands end with a fault of the configuration, and a node waits
// until it is fixed on the server, and says so wherever it is asked.
func TestCoordinationDatabaseThatLetsNobodyIn(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	role := pgtest.NewRole(t, database)
	for name, tc := range map[string]struct {
		change      func(*url.URL)
		words, code string
	}{
		"a wrong password": {
			func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "hunter2") },
			"its server refuses the role, its password or this host", "28P01",
		},
		"a missing database": {func(u *url.URL) { u.Path = "/no_such_database" }, "its server has no database of that name", "3D000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := coordinated(t, role, tc.change)
			parsed, err := url.Parse(p.config.Database.URL.Reveal())
			if err != nil {
				t.Fatal(err)
			}
			user, password, base := parsed.User.Username(), secretOf(parsed), strings.TrimPrefix(parsed.Path, "/")

			v := admin.Validate(t.Context(), admin.ValidateOptions{Config: p.config, Logger: slog.New(slog.DiscardHandler), Timeout: patience})
			if wiring.FaultOf(v.Err()) != wiring.Misconfigured || !strings.Contains(fmt.Sprint(v.Err()), tc.code) {
				t.Errorf("validate: fault %v of %v", wiring.FaultOf(v.Err()), v.Err())
			}
			if _, err := p.operator(t).Report(t.Context()); wiring.FaultOf(err) != wiring.Misconfigured {
				t.Errorf("status: fault %v of %v", wiring.FaultOf(err), err)
			}

			node, log := p.startLogged(t)
			eventually(t, doing(node, "Waits for the coordination database: "+tc.words+"; see the log"))
			eventually(t, func() error { return tells(log.String(), tc.words, tc.code, user, base) })
			for _, path := range []string{"/", "/readyz"} {
				if text := says(t, node, path, tc.words); strings.Contains(text, user) {
					t.Errorf("%s says to everyone:\n%s", path, text)
				}
			}
			if strings.Contains(node.Doing(), user) {
				t.Errorf("everybody may read %q", node.Doing())
			}
			if text := log.String() + fmt.Sprint(v.Err()) + pageText(t, node, "/"); strings.Contains(text, password) {
				t.Errorf("the password is told:\n%s", text)
			}
			if node.Err() != nil {
				t.Errorf("it does not wait: %v", node.Err())
			}
		})
	}
}

func secretOf(u *url.URL) string {
	password, _ := u.User.Password()
	return password
}

func pageText(t *testing.T, node *app.App, path string) string {
	t.Helper()
	_, text := get(t, node, path)
	return text
}

// says waits until the page has the words, and returns its text: a database that is
// slow to answer may not be told from one that does not, at first.
func says(t *testing.T, node *app.App, path, words string) (text string) {
	t.Helper()
	eventually(t, func() error {
		if text = pageText(t, node, path); !strings.Contains(text, words) {
			return fmt.Errorf("%s lacks %q:\n%s", path, words, text)
		}
		return nil
	})
	return text
}

// tells complains unless the log says for what it waits, with all the words in one
// line. It may have waited for something else before.
func tells(log string, words ...string) error {
	complaint := errors.New("the log does not say that it waits:\n" + log)
	for line := range strings.Lines(log) {
		var entry struct{ Level, Msg, Err string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Msg != "Waiting for the coordination database" {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.Contains(entry.Err, word) })
		if len(missing) == 0 {
			return nil
		}
		complaint = fmt.Errorf("no %q in %s", missing, line)
	}
	return complaint
}

// TestPageSaysWhatIsWrongWithTheTable takes a column from under a node at work:
// the database answers, and is not said to be down.
func TestPageSaysWhatIsWrongWithTheTable(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	node := setup(t, database).start(t)
	eventually(t, func() error { return page(t, node, "/", `id="h-nodes"`) })
	run(t, openPostgres(t, database), `ALTER TABLE int_lock RENAME created_date TO created`)
	text := says(t, node, "/", "Cluster status unavailable: INT_LOCK is neither generation")
	if !strings.Contains(text, "the column CREATED_DATE is missing") || strings.Contains(text, "does not answer") {
		t.Errorf("the page:\n%s", text)
	}
	run(t, openPostgres(t, database), `ALTER TABLE int_lock RENAME created TO created_date`)
	eventually(t, func() error {
		if err := page(t, node, "/", "Cluster status unavailable"); err == nil {
			return errors.New("the page does not show that the table is right again")
		}
		return nil
	})
}
