package postgres_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// What a server shows for moments only, or to few, is shown here by a table in
// the place of pg_stat_activity. Each session began a transaction ten minutes ago, if it says so.
func TestHorizonOfSessions(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	owner := connect(t, url)
	exec(t, owner, `CREATE SCHEMA shadow;
		CREATE TABLE shadow.pg_stat_activity (datname name DEFAULT current_database(), pid int DEFAULT -1, application_name text,
			backend_start timestamptz, xact_start timestamptz, state text, backend_type text)`)
	role := pgtest.NewRole(t, url, "SELECT ON shadow.pg_stat_activity", "USAGE ON SCHEMA shadow")
	s := open(t, postgres.Options{URL: role})
	// Of a session: when it began, when its transaction did, its state and type.
	const (
		hidden    = `(NULL, NULL, NULL, NULL)`
		client    = `(now(), now() - interval '10 min', 'active', 'client backend')`
		starting  = `(now(), NULL, NULL, 'client backend')`
		untold    = `(now(), NULL, 'disabled', 'client backend')`
		failed    = `(now(), NULL, 'idle in transaction (aborted)', 'client backend')`
		dying     = `(now(), NULL, 'idle in transaction', 'client backend')`
		cron      = `(now(), now() - interval '10 min', NULL, 'pg_cron')`
		cronMute  = `(now(), NULL, 'disabled', 'pg_cron')`
		ending    = `(now(), now() - interval '10 min', NULL, NULL)`
		ended     = `(now(), NULL, NULL, NULL)`
		parallel  = `(now(), now() - interval '10 min', 'active', 'parallel worker')`
		vacuum    = `(now(), now() - interval '10 min', 'active', 'autovacuum worker')`
		streaming = `(now(), now() - interval '10 min', 'active', 'walsender')`
	)
	for name, test := range map[string]struct {
		sessions string
		exact    bool
		lag      time.Duration
	}{
		"a client":                             {client, true, 10 * time.Minute},
		"a client that starts":                 {starting, true, 0},
		"who does not tell":                    {untold, false, time.Minute},
		"who can only roll back, or has":       {failed + "," + dying, true, 0},
		"a hidden session":                     {hidden, false, time.Minute},
		"a hidden session, beside an old one":  {hidden + "," + client, false, 10 * time.Minute},
		"who does not tell, beside an old one": {untold + "," + cron, false, 10 * time.Minute},
		"a worker":                             {cron, true, 10 * time.Minute},
		"a worker that does not tell":          {cronMute, false, time.Minute},
		"a worker that ends":                   {ending, true, 10 * time.Minute},
		"a worker that has committed":          {ended, true, 0},
		"those who never write":                {parallel + "," + vacuum + "," + streaming, true, 0},
	} {
		exec(t, owner, "TRUNCATE shadow.pg_stat_activity; INSERT INTO shadow.pg_stat_activity (backend_start, xact_start, state, backend_type) VALUES "+test.sessions)
		h, err := postgres.HorizonOver(t.Context(), s, "shadow.pg_stat_activity")
		if err != nil {
			t.Fatal(err)
		}
		if h.Exact != test.exact || h.Lag < test.lag || h.Lag > test.lag+30*time.Second {
			t.Errorf("%s: horizon = %+v, want a lag of %s, exact: %t", name, h, test.lag, test.exact)
		}
	}
}
