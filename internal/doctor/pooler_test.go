package doctor_test

import (
	"net/url"
	"testing"

	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/test/kit/bouncertest"
)

// behind returns the same database through a PgBouncer.
func (p *subject) behind(t *testing.T, mode bouncertest.Mode) *subject {
	t.Helper()
	pooled := *p
	options := bouncertest.Options{Mode: mode}
	if bouncertest.Prepares(t) {
		options.Settings = map[string]string{"max_prepared_statements": "0"}
	}
	pooled.url = bouncertest.Start(t, p.url, options).URL()
	return &pooled
}

// TestPoolers has a real PgBouncer between, as one that is older than 1.21, and one
// that imitates a newer one.
func TestPoolers(t *testing.T) {
	t.Parallel()
	p := postgres(t, springSix)
	p.migrate(t)
	says(t, p.examine(t, 0), "pooler", doctor.OK, "no connection pooler")

	found := p.behind(t, bouncertest.Session).examine(t, 0)
	says(t, found, "pooler", doctor.OK, "in session mode")
	says(t, found, "look", doctor.OK)

	found = p.behind(t, bouncertest.Transaction).examine(t, 0)
	says(t, found, "pooler", doctor.Problem, "in transaction mode", "PgBouncer 1.21 or newer with max_prepared_statements", "refuses to start")
	says(t, found, "look", doctor.OK)

	newer := *p
	newer.url = bouncertest.StandIn(t, p.url)
	found = newer.examine(t, 0)
	says(t, found, "pooler", doctor.Warning, "in transaction mode", "waited for until its TTL")
	says(t, found, "look", doctor.OK)
	healthy(t, found, "pooler", "rights", "nodes")
}

// TestLimitsOfThePooledRole has a pooler in transaction mode, through which nodes set
// nothing: what the role has, counts.
func TestLimitsOfThePooledRole(t *testing.T) {
	t.Parallel()
	p := postgres(t)
	p.migrate(t)
	role, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	pooled := func() *subject { return &subject{url: bouncertest.StandIn(t, p.url), want: p.want} }
	found := pooled().examine(t, 0)
	says(t, found, "pooler", doctor.Problem, "has no statement_timeout, no lock_timeout, no idle_in_transaction_session_timeout",
		"ALTER ROLE "+role.User.Username()+" SET lock_timeout = '5s'")
	database := `"` + role.Path[1:] + `"`
	p.exec(t, `ALTER DATABASE `+database+` SET lock_timeout = '5s'`, `ALTER DATABASE `+database+` SET idle_in_transaction_session_timeout = '10s'`,
		`ALTER DATABASE `+database+` SET default_transaction_isolation = 'serializable'`)
	found = pooled().examine(t, 0)
	says(t, found, "pooler", doctor.Problem, "has no statement_timeout", "cannot set it")
	says(t, found, "pooler", doctor.Problem, "the isolation serializable")
}
