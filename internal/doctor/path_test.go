package doctor_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestSearchPath has a schema in which others may create, and have.
func TestSearchPath(t *testing.T) {
	t.Parallel()
	p := postgres(t)
	p.migrate(t)
	says(t, p.examine(t, 0), "search-path", doctor.OK, "(public)")
	stranger := admit(t, pgtest.NewRole(t, p.url, "USAGE, CREATE ON SCHEMA public"))
	stranger.exec(t, `CREATE FUNCTION public.planted(varchar, varchar) RETURNS bool LANGUAGE sql AS 'SELECT TRUE'`,
		`CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = public.planted)`)
	p.exec(t, `CREATE FUNCTION public.own(varchar) RETURNS bool LANGUAGE sql AS 'SELECT TRUE'`)
	pooled := *p
	pooled.url = bouncertest.StandIn(t, p.url)
	for _, c := range []struct {
		way      *subject
		severity doctor.Severity
		why      string
	}{
		{p, doctor.Warning, "name their schema and heed none of it"},
		{&pooled, doctor.Problem, "in any statement of a node"},
	} {
		found := c.way.examine(t, 0)
		says(t, found, "search-path", c.severity, "the schema public of the search_path is open: role_", c.why, "REVOKE CREATE ON SCHEMA public FROM role_")
		says(t, found, "search-path", c.severity, "what belongs to others: function public.planted(character varying,character varying) of role_",
			"operator public.=(character varying,character varying) of role_", c.why, "coordination.sql")
	}
	p.exec(t, `GRANT CREATE ON SCHEMA public TO PUBLIC`)
	says(t, p.examine(t, 0), "search-path", doctor.Warning, "PUBLIC, role_", "REVOKE CREATE ON SCHEMA public FROM PUBLIC, role_")
}

// TestSearchPathOfStrangers has schemas after ours: one in which a role may create that
// has a table of our name there, which no node uses, and one of its own.
func TestSearchPathOfStrangers(t *testing.T) {
	t.Parallel()
	p := postgres(t, `CREATE SCHEMA ours`)
	p.url += "&search_path=ours,public,theirs"
	p.migrate(t)
	address := pgtest.NewRole(t, p.url, "USAGE, CREATE ON SCHEMA public")
	stranger := admit(t, address)
	p.exec(t, fmt.Sprintf(`CREATE SCHEMA theirs AUTHORIZATION %q`, roleOf(t, address)))
	stranger.exec(t, `CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT NULL'`,
		`CREATE FUNCTION theirs.lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT NULL'`,
		`CREATE TABLE public.obs_migration ()`, `CREATE TABLE theirs.int_lock ()`)
	found := p.examine(t, 0)
	says(t, found, "search-path", doctor.Warning, "the schema public of the search_path is open: role_")
	says(t, found, "search-path", doctor.Warning, "what belongs to others: function public.lower(character varying) of role_")
	says(t, found, "search-path", doctor.Warning, "the schema theirs of the search_path belongs to the role role_", "search_path=NAME")
	says(t, found, "search-path", doctor.Warning, "what belongs to others: function theirs.lower(character varying) of role_")
	if err := p.observerd(t).Ready(t.Context()); err != nil {
		t.Errorf("a node says %v", err)
	}
}

func roleOf(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.User.Username()
}
