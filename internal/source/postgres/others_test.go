package postgres_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// lateRow is of a transaction that began half a minute ago, and that nobody can
// see from here.
const lateRow = "INSERT INTO events VALUES (1, now() - interval '30 s')"

// byOthers asks for the horizon and the description of what other transactions
// than those of this database bring. A row that they bring then must lie above it.
func byOthers(t *testing.T, s *postgres.Source, q observer.Query, warning string, bring func()) {
	t.Helper()
	q.Stream, q.Key, q.Timestamp = "events", []string{"id"}, "at"
	d, err := s.Describe(t.Context(), q)
	if err != nil || d.HorizonExact || len(d.Warnings) == 0 || !strings.Contains(d.Warnings[0], warning) {
		t.Errorf("description = %+v, %v, want a warning of %q", d, err, warning)
	}
	h := horizon(t, s, q)
	if h.Exact || h.Lag != time.Minute {
		t.Errorf("horizon = %+v, want a minute behind", h)
	}
	bring()
	waittest.Eventually(t, time.Minute, func() error {
		if len(sourcetest.ReadAll(t, s, q, observer.Range{})) == 0 {
			return fmt.Errorf("the row did not arrive")
		}
		return nil
	})
	if rows := sourcetest.ReadAll(t, s, q, observer.Range{From: h.Cursor}); len(rows) != 1 {
		t.Errorf("%d rows from the horizon %s on, want the late one", len(rows), h.Cursor)
	}
}

// notByOthers is the same for what only this database's transactions bring.
func notByOthers(t *testing.T, s *postgres.Source, q observer.Query) {
	t.Helper()
	q.Stream, q.Key, q.Timestamp = "events", []string{"id"}, "at"
	if d, err := s.Describe(t.Context(), q); err != nil || !d.HorizonExact || len(d.Warnings) > 0 {
		t.Errorf("description of %+v = %+v, %v, want no warning", q, d, err)
	}
	if h := horizon(t, s, q); !h.Exact {
		t.Errorf("horizon of %+v = %+v, want it exact", q, h)
	}
}

// A materialized view shows rows when it is refreshed.
func TestHorizonOverMaterializedViews(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]observer.Query{
		"itself":           {Table: "refreshed"},
		"view":             {Table: "direct"},
		"view of a view":   {Table: "nested"},
		"query":            {SQL: "SELECT * FROM refreshed"},
		"query of a view":  {SQL: "SELECT * FROM nested"},
		"CTE":              {SQL: "WITH r AS MATERIALIZED (SELECT * FROM refreshed) SELECT e.* FROM events e JOIN r USING (id)"},
		"subquery":         {SQL: "SELECT * FROM events WHERE id = (SELECT min(id) FROM refreshed)"},
		"inlined function": {SQL: "SELECT * FROM inlined()"},
		"policy":           {Table: "secured"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.New(t)
			owner := connect(t, address)
			exec(t, owner, eventsTable+`;
				CREATE MATERIALIZED VIEW refreshed AS SELECT * FROM events;
				CREATE VIEW direct AS SELECT * FROM refreshed WHERE id > 0;
				CREATE VIEW nested AS SELECT * FROM direct UNION ALL SELECT * FROM direct WHERE false;
				CREATE FUNCTION inlined() RETURNS TABLE (id int, at timestamptz) STABLE LANGUAGE sql AS 'SELECT * FROM refreshed';
				CREATE VIEW secured_rows AS SELECT id FROM refreshed;
				CREATE TABLE secured (LIKE events); ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
				CREATE POLICY known ON secured USING (id IN (SELECT id FROM secured_rows))`)
			s := open(t, postgres.Options{URL: pgtest.NewRole(t, address, "SELECT ON ALL TABLES IN SCHEMA public", "pg_read_all_stats")})
			byOthers(t, s, q, "public.refreshed is a materialized view", func() {
				exec(t, owner, lateRow+"; INSERT INTO secured TABLE events; REFRESH MATERIALIZED VIEW refreshed")
			})
		})
	}
}

// elsewhere makes a foreign table of the events in another database, whose
// address it returns.
func elsewhere(t *testing.T, owner *pgx.Conn) string {
	t.Helper()
	address := pgtest.New(t)
	exec(t, connect(t, address), eventsTable)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	exec(t, owner, fmt.Sprintf(`
		CREATE EXTENSION postgres_fdw;
		CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname '%s');
		CREATE USER MAPPING FOR PUBLIC SERVER elsewhere OPTIONS (user '%s', password '%s', password_required 'false');
		CREATE FOREIGN TABLE distant (id int, at timestamptz NOT NULL) SERVER elsewhere OPTIONS (table_name 'events')`,
		u.Hostname(), u.Port(), strings.TrimPrefix(u.Path, "/"), u.User.Username(), password))
	return address
}

// The transactions of another server cannot be seen.
func TestHorizonOverForeignTables(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]struct {
		with  string
		query observer.Query
	}{
		"itself":          {"", observer.Query{Table: "distant"}},
		"view":            {"CREATE VIEW direct AS SELECT * FROM distant", observer.Query{Table: "direct"}},
		"view of a view":  {"CREATE VIEW direct AS SELECT * FROM distant; CREATE VIEW nested AS SELECT * FROM direct", observer.Query{Table: "nested"}},
		"query":           {"", observer.Query{SQL: "SELECT * FROM distant"}},
		"query of a view": {"CREATE VIEW direct AS SELECT * FROM distant", observer.Query{SQL: "SELECT * FROM direct"}},
		// The server that has both tables joins them, and the plan names neither.
		"join over there": {"", observer.Query{SQL: "SELECT a.* FROM distant a JOIN distant b USING (id)"}},
		"partition": {
			`CREATE TABLE parts (id int, at timestamptz NOT NULL) PARTITION BY RANGE (id);
			CREATE TABLE near PARTITION OF parts FOR VALUES FROM (100) TO (200);
			ALTER TABLE parts ATTACH PARTITION distant FOR VALUES FROM (0) TO (100)`,
			observer.Query{Table: "parts"},
		},
		"partition of a partition": {
			`CREATE TABLE parts (id int, at timestamptz NOT NULL) PARTITION BY RANGE (id);
			CREATE TABLE near PARTITION OF parts FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id);
			ALTER TABLE near ATTACH PARTITION distant FOR VALUES FROM (0) TO (50);
			CREATE VIEW direct AS SELECT * FROM parts`,
			observer.Query{Table: "direct"},
		},
		"child": {"CREATE TABLE base (id int, at timestamptz NOT NULL); ALTER FOREIGN TABLE distant INHERIT base", observer.Query{Table: "base"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.New(t)
			owner := connect(t, address)
			there := elsewhere(t, owner)
			exec(t, owner, shape.with)
			byOthers(t, open(t, postgres.Options{URL: address}), shape.query, "public.distant is a foreign table", func() {
				exec(t, connect(t, there), lateRow)
			})
		})
	}
}

// What a function reads nobody knows, unless the planner puts its text into the
// query. The rows of this one are another server's.
func TestHorizonOverFunctions(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]observer.Query{
		"query":               {SQL: "SELECT * FROM called()"},
		"view":                {Table: "calling"},
		"several in one item": {SQL: "SELECT id, at FROM ROWS FROM (called(), generate_series(1, 1)) AS f (id, at, n)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.New(t)
			owner := connect(t, address)
			there := elsewhere(t, owner)
			exec(t, owner, `
				CREATE FUNCTION called() RETURNS TABLE (id int, at timestamptz) LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT * FROM distant; END';
				CREATE VIEW calling AS SELECT c.* FROM called() c JOIN generate_series(1, 1) ON true`)
			byOthers(t, open(t, postgres.Options{URL: address}), q, "function", func() { exec(t, connect(t, there), lateRow) })
		})
	}
}

// What is looked through and holds nothing of others stays exact. So does what
// the planner knows not to read.
func TestHorizonOverOwnTables(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	elsewhere(t, owner)
	exec(t, owner, eventsTable+`;
		CREATE MATERIALIZED VIEW refreshed AS SELECT * FROM events;
		CREATE VIEW direct AS SELECT * FROM events;
		CREATE TABLE parts (id int, at timestamptz NOT NULL) PARTITION BY RANGE (id);
		CREATE TABLE near PARTITION OF parts FOR VALUES FROM (100) TO (200);
		ALTER TABLE parts ATTACH PARTITION distant FOR VALUES FROM (0) TO (100)`)
	s := open(t, postgres.Options{URL: address})
	for _, q := range []observer.Query{
		{Table: "events"},
		{Table: "direct"},
		{Table: "near"},
		{SQL: "SELECT * FROM direct"},
		{SQL: "SELECT * FROM parts WHERE id = 100"},
		{SQL: "SELECT d.* FROM direct d, unnest(ARRAY[1]) u"},
		{SQL: "SELECT id, at, unnest(ARRAY[1]) FROM direct"},
	} {
		notByOthers(t, s, q)
	}
	// It may be replaced meanwhile.
	exec(t, owner, "CREATE OR REPLACE VIEW direct AS SELECT * FROM refreshed")
	if h := horizon(t, s, observer.Query{Table: "direct", Key: []string{"id"}, Timestamp: "at"}); h.Exact {
		t.Errorf("horizon of a replaced view = %+v", h)
	}
}

// Rows that are replicated carry times of another database's transactions. The
// role that reads needs no right to see that.
func TestHorizonOverReplicatedTables(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{
		"wal_level": "logical", "max_worker_processes": "30", "max_logical_replication_workers": "20", "wal_retrieve_retry_interval": "100ms",
	}})
	const (
		parted = `CREATE TABLE events (id int, at timestamptz NOT NULL) PARTITION BY RANGE (id);
			CREATE TABLE part PARTITION OF events FOR VALUES FROM (0) TO (100)`
		part = "CREATE TABLE part (id int, at timestamptz NOT NULL)"
	)
	for name, shape := range map[string]struct {
		there, published string
		here             string
		query            observer.Query
		warning          string
	}{
		"table":           {eventsTable, "TABLE events", eventsTable, observer.Query{Table: "events"}, "public.events"},
		"view":            {eventsTable, "TABLE events", eventsTable + "; CREATE VIEW direct AS SELECT * FROM events", observer.Query{Table: "direct"}, "public.events"},
		"query":           {eventsTable, "TABLE events", eventsTable, observer.Query{SQL: "SELECT * FROM events"}, "public.events"},
		"partition":       {parted, "TABLE events", parted, observer.Query{Table: "part"}, "public.part"},
		"its root":        {parted, "TABLE events", parted, observer.Query{Table: "events"}, "public.part"},
		"through a root":  {parted, "TABLE events WITH (publish_via_partition_root = true)", parted, observer.Query{Table: "part"}, "public.part"},
		"of another root": {parted, "TABLE events WITH (publish_via_partition_root = true)", parted, observer.Query{SQL: "SELECT * FROM part"}, "public.part"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := "a_" + strings.ReplaceAll(name, " ", "_")
			admin := connect(t, server.URL("postgres"))
			exec(t, admin, "CREATE DATABASE "+id)
			exec(t, admin, "CREATE DATABASE "+id+"_copy")
			publisher, owner := connect(t, server.URL(id)), connect(t, server.URL(id+"_copy"))
			exec(t, publisher, shape.there+"; CREATE PUBLICATION news FOR "+shape.published)
			exec(t, publisher, "SELECT pg_create_logical_replication_slot('"+id+"', 'pgoutput')")
			exec(t, owner, shape.here+"; CREATE TABLE own (id int, at timestamptz NOT NULL)")
			s := open(t, postgres.Options{URL: pgtest.NewRole(t, server.URL(id+"_copy"), "SELECT ON ALL TABLES IN SCHEMA public", "pg_read_all_stats")})
			notByOthers(t, s, shape.query)
			exec(t, owner, fmt.Sprintf("CREATE SUBSCRIPTION %s CONNECTION '%s' PUBLICATION news WITH (create_slot = false, copy_data = false)", id, server.URL(id)))
			byOthers(t, s, shape.query, shape.warning+" is filled by logical replication", func() { exec(t, publisher, lateRow) })
			notByOthers(t, s, observer.Query{Table: "own"})
			exec(t, owner, "DROP SUBSCRIPTION "+id)
		})
	}
}
