package sqlsink_test

import (
	neturl "net/url"
	"strings"
	"testing"

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
	probed(t, settings(t, "postgres://nobody:"+canary+"@127.0.0.1:1/x", "public", false), "! refused")
	wrong, err := neturl.Parse(pgtest.NewRole(t, url))
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = neturl.UserPassword(wrong.User.Username(), canary)
	probed(t, settings(t, wrong.String(), "public", false), "! 28P01")
}
