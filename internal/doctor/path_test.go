package doctor_test

import (
	"testing"

	"github.com/observerd/observerd/internal/bouncertest"
	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/pgtest"
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
		way      *patient
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
