package sqlsink_test

import (
	neturl "net/url"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/sink/sqlsink"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// settings are those of a section of the configuration.
func settings(t *testing.T, url, schema string, create bool) *sqlsink.Settings {
	t.Helper()
	s := &sqlsink.Settings{Schema: schema, Create: create}
	if err := s.URL.UnmarshalText([]byte(url)); err != nil {
		t.Fatal(err)
	}
	return s
}

// probed checks that the probe finds only what has one of these texts, behind a ? for a
// warning and a ! for a mistake.
func probed(t *testing.T, s *sqlsink.Settings, want ...string) {
	t.Helper()
	var texts []string
	for _, f := range s.Probe(t.Context()) {
		mark := "! "
		if f.Warning {
			mark = "? "
		}
		texts = append(texts, mark+f.Err.Error())
	}
	fits := len(texts) == len(want)
	for i := range min(len(texts), len(want)) {
		fits = fits && texts[i][0] == want[i][0] && strings.Contains(texts[i], want[i][2:]) && !strings.Contains(texts[i], canary)
	}
	if !fits {
		t.Errorf("found %q, want %q", texts, want)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	url := database(t)
	probed(t, settings(t, url, "public", false))
	if n := query[int](t, connect(t, url), `SELECT count(*) FROM obs_feed`); n > 0 {
		t.Errorf("the probe has written %d rows", n)
	}
	probed(t, settings(t, pgtest.New(t), "inbox", true))
	probed(t, settings(t, database(t,
		`ALTER TABLE obs_feed_event ALTER data TYPE jsonb, ADD team text NOT NULL, ADD note text, ADD kept int NOT NULL DEFAULT 1`), "public", false),
		"? obs_feed_event.data is not json", "! obs_feed_event.team has no default")
	probed(t, settings(t, pgtest.NewIn(t, "LATIN1"), "public", true), "? encoding of the database is LATIN1")
	probed(t, settings(t, "postgres://nobody:"+canary+"@127.0.0.1:1/x", "public", false),
		"! connect: no session as nobody on database x at 127.0.0.1:1: connection refused; does the server run, and are host and port right in url?")
	wrong, err := neturl.Parse(pgtest.NewRole(t, url))
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = neturl.UserPassword(wrong.User.Username(), canary)
	probed(t, settings(t, wrong.String(), "public", false), "! 28P01")
}

// report keeps what is rejected, by key.
type report map[string]string

func (r report) Reject(key, text string) { r[key] = text }
func (r report) Warn(key, text string)   { r[key] = "? " + text }

func TestSettingsAreJudgedWithoutAConnection(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://u:" + canary + "@h/d":                           "",
		"postgres://u:" + canary + "@a:1,b:2/d?sslmode=verify-full": "",
		"postgres://u:" + canary + "@h/d?sslmode=sometimes":         "this is not a URL of PostgreSQL",
		"postgres://u:" + canary + "@h:x/d":                         "this is not a URL of PostgreSQL",
		"postgres://u@h/d?sslmode=verify-full&sslrootcert=/no/file": "a file that the URL names cannot be read",
	} {
		found := report{}
		var s sqlsink.Settings
		s.URL.Secret = field.NewSecret(url)
		s.Check(found)
		if got := found["url"]; (want == "") != (got == "") || !strings.HasPrefix(got, want) || strings.Contains(got, canary) {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	target := func(url, schema string) string {
		_, place := settings(t, url, schema, false).Target()
		return place
	}
	one := target("postgres://a@h/d", "public")
	if one != target("postgres://b@h:5432/d?sslmode=require", "public") || one == target("postgres://a@h/d", "inbox") || one == target("postgres://a@h/e", "public") {
		t.Error("two sinks of one schema are not seen, or two schemas are taken for one")
	}
	found := report{}
	settings(t, "postgres://a@h/d", strings.Repeat("x", 64), false).Check(found)
	if len(found) != 1 || found["schema"] == "" {
		t.Errorf("a name that is too long: %v", found)
	}
}
