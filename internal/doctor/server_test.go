package doctor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// TestServerThatForgets has a server that loses what it answered.
func TestServerThatForgets(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"fsync": "off", "full_page_writes": "off", "idle_session_timeout": "60000"}})
	p := admit(t, server.URL("postgres"))
	found := p.examine(t, 0)
	says(t, found, "durability", doctor.Problem, "fsync is off")
	says(t, found, "durability", doctor.Problem, "full_page_writes is off")
	says(t, found, "server", doctor.Warning, "idle for 60000 ms")
}

// TestStandby has a server that follows another one.
func TestStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	p := admit(t, server.URL("postgres"))
	p.migrate(t)
	if err := server.Demote(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := p.examine(t, 200*time.Millisecond)
	says(t, found, "server", doctor.Problem, "the server is a standby")
	says(t, found, "look", doctor.OK)
}

// TestSeveralHosts has a primary and its standby in one URL.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Standby(t)
	at := func(parameters string, ports ...int) *subject {
		var hosts []string
		for _, port := range ports {
			hosts = append(hosts, fmt.Sprint("127.0.0.1:", port))
		}
		return &subject{url: "postgres://postgres@" + strings.Join(hosts, ",") + "/postgres?sslmode=disable" + parameters}
	}
	// Whatever comes first, the doctor looks at the primary as nodes do.
	says(t, at("", standby.Port(), primary.Port()).examine(t, 0), "server", doctor.OK)
	alone, err := examine.Run(t.Context(), examine.Options{URL: at("", 1, standby.Port()).url})
	if !errors.Is(err, sqldb.ErrReadOnly) || !sqldb.Unavailable(err) || len(alone.Blind) > 0 {
		t.Errorf("a standby and a host that is down: %v", err)
	}

	found := at("&target_session_attrs=any", primary.Port(), standby.Port()).examine(t, 0)
	says(t, found, "server", doctor.Warning, "target_session_attrs=any", fmt.Sprint("127.0.0.1:", standby.Port()), "which may be a standby")
	found = at("&target_session_attrs=any", standby.Port(), primary.Port()).examine(t, 0)
	says(t, found, "server", doctor.Problem, "the server is a standby")
	says(t, found, "server", doctor.Warning, "target_session_attrs=any")
	healthy(t, at("&target_session_attrs=any", primary.Port()).examine(t, 0), "durability", "rights", "lock-table", "schema", "nodes")
}

// TestReplication has a standby that may lack what the primary has committed.
func TestReplication(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	p := admit(t, primary.URL("postgres"))
	p.migrate(t)
	says(t, p.examine(t, 0), "durability", doctor.OK)
	primary.Standby(t)
	says(t, p.examine(t, 0), "durability", doctor.Warning, "1 standby streams from this server, and synchronous_standby_names is empty")
	q := *p
	q.url = pgtest.NewRole(t, p.url, "SELECT ON ALL TABLES IN SCHEMA public")
	says(t, q.examine(t, 0), "durability", doctor.Note, "1 session for replication is open", "may not see")
	p.exec(t, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	waittest.Eventually(t, time.Minute, func() error { // The server reads it when it comes to that.
		for _, f := range p.examine(t, 0) {
			if f.Check == "durability" && f.Severity == doctor.OK {
				return nil
			}
		}
		return errors.New("the setting is not in force")
	})
	p.exec(t, `ALTER DATABASE postgres SET synchronous_commit = local`)
	says(t, p.examine(t, 0), "durability", doctor.Warning, "synchronous_commit is local")
}

// TestCommitsThatWaitForAStandby has a server that waits for a standby that is not there.
func TestCommitsThatWaitForAStandby(t *testing.T) {
	t.Parallel()
	p := admit(t, pgtest.Start(t, pgtest.Options{}).URL("postgres"))
	p.migrate(t)
	p.exec(t, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	waittest.Eventually(t, time.Minute, func() error {
		found := printed(p.examine(t, 0))
		if !strings.Contains(found, "no standby streams from this server") {
			return errors.New(found)
		}
		return nil
	})
}

// TestSettingsOfTheDatabase covers what can be set for one database alone.
func TestSettingsOfTheDatabase(t *testing.T) {
	t.Parallel()
	p := postgres(t, springSix)
	var name string
	if err := p.db.QueryRowContext(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{"synchronous_commit = off", "default_transaction_read_only = on", "default_transaction_isolation = 'serializable'"} {
		p.exec(t, `ALTER DATABASE "`+name+`" SET `+setting)
	}
	found := p.examine(t, 0)
	says(t, found, "durability", doctor.Problem, "synchronous_commit is off")
	says(t, found, "server", doctor.Problem, "default_transaction_read_only is on")
	says(t, found, "server", doctor.Note, "default_transaction_isolation is serializable")
}

// TestNodesOfAServerThatIsReadOnlyMayLive has a node that cannot show that it lives.
func TestNodesOfAServerThatIsReadOnlyMayLive(t *testing.T) {
	t.Parallel()
	p := postgres(t, springSix)
	p.migrate(t)
	p.begin(t, "a")()
	const died = "has died within the last minute"
	waittest.Eventually(t, time.Minute, func() error {
		if text := printed(p.examine(t, 0)); !strings.Contains(text, died) {
			return errors.New(text)
		}
		return nil
	})
	p.exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	if text := printed(p.examine(t, 0)); strings.Contains(text, died) || !strings.Contains(text, "default_transaction_read_only is on") {
		t.Error(text)
	}
}

// TestRights looks with the eyes of roles that have too much and too little.
func TestRights(t *testing.T) {
	t.Parallel()
	p := postgres(t, springSix)
	p.migrate(t)
	says(t, p.examine(t, 0), "rights", doctor.Warning, "SUPERUSER")

	p.exec(t, `REVOKE EXECUTE ON FUNCTION obs_int_lock() FROM PUBLIC`)
	poor := *p
	poor.url = pgtest.NewRole(t, p.url, "SELECT, INSERT, UPDATE ON int_lock", "SELECT ON ALL TABLES IN SCHEMA public")
	found := poor.examine(t, 0)
	says(t, found, "rights", doctor.Problem, "DELETE on int_lock", "INSERT on obs_cursor", "USAGE on sequence obs_fence", "EXECUTE on function obs_int_lock")
	says(t, found, "look", doctor.OK)

	blind := *p
	blind.url = pgtest.NewRole(t, p.url, "SELECT, INSERT, UPDATE, DELETE ON int_lock")
	found = blind.examine(t, 0)
	says(t, found, "look", doctor.Problem, "obs_migration")
	says(t, found, "rights", doctor.Problem, "SELECT on obs_event")
}

// TestRightsBeforeTheMigration looks with the eyes of a role that nodes have: to
// make tables is its business only if it migrates.
func TestRightsBeforeTheMigration(t *testing.T) {
	t.Parallel()
	p := postgres(t, springSix)
	node := *p
	node.url = pgtest.NewRole(t, p.url, "SELECT, INSERT, UPDATE, DELETE ON int_lock")
	found := node.examine(t, 0)
	says(t, found, "rights", doctor.Problem, "lacks CREATE on schema public")
	says(t, found, "schema", doctor.Note, "with a role that has CREATE on schema public")
	node.want.AutoMigrate = false
	found = node.examine(t, 0)
	healthy(t, found, "nodes")
	says(t, found, "schema", doctor.Note, "observerd migrate up")
}

// TestSchemaOfAnotherVersion compares the schema with the binary's.
func TestSchemaOfAnotherVersion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		p.exec(t, `INSERT INTO obs_migration (version_id, is_applied) VALUES (99999, TRUE)`)
		says(t, p.examine(t, 0), "schema", doctor.Problem, "99999", "refuses to start")
	})
}

// TestDatabaseThatIsDown is no finding: there is nothing to look at.
func TestDatabaseThatIsDown(t *testing.T) {
	t.Parallel()
	_, err := examine.Run(t.Context(), examine.Options{URL: "postgres://observerd:hunter2@127.0.0.1:1/none?sslmode=disable&connect_timeout=1"})
	if !sqldb.Unavailable(err) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("nobody listens there: %v", err)
	}
}

// TestNothingIsWritten compares the database with itself. On PostgreSQL
// TestStandby says more: nothing at all can be written there.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		node := p.observerd(t)
		if _, err := node.Leases().Acquire(t.Context(), orderRequest(p)); err != nil {
			t.Fatal(err)
		}
		if err := node.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.db.Close(); err != nil {
			t.Fatal(err)
		}
		before := p.content(t)
		p.examine(t, 200*time.Millisecond)
		if p.content(t) != before {
			t.Error("the examination has changed the database")
		}
	})
}
