package lockdb_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// plantSQL makes what runs as another role when that role's statements meet it: an
// operator of each name for each pair of types for which pg_catalog has none, and
// functions of common names. Each notes that it ran.
const plantSQL = `
CREATE SEQUENCE public.executions;
GRANT USAGE ON SEQUENCE public.executions TO PUBLIC;
DO $plant$
DECLARE
  types text[] := '{text,varchar,bpchar,name,"\"char\"",int2,int4,int8,numeric,float4,float8,bool,timestamp,timestamptz,interval,uuid,bytea,json,oid}';
  operators text[] := '{=,<>,<,<=,>,>=,||,+,-,*,/,~~,!~~,~~*}';
  a text; b text; op text;
BEGIN
  FOREACH a IN ARRAY types LOOP
    EXECUTE format('CREATE FUNCTION public.lower(%s) RETURNS text LANGUAGE sql AS $$ SELECT nextval(''public.executions'')::text $$', a);
    EXECUTE format('CREATE FUNCTION public.length(%s) RETURNS int LANGUAGE sql AS $$ SELECT nextval(''public.executions'')::int $$', a);
    EXECUTE format('CREATE FUNCTION public.abs(%s) RETURNS int LANGUAGE sql AS $$ SELECT nextval(''public.executions'')::int $$', a);
    FOREACH b IN ARRAY types LOOP
      EXECUTE format('CREATE FUNCTION public.planted(%s, %s) RETURNS bool LANGUAGE sql AS $$ SELECT nextval(''public.executions'') > 0 $$', a, b);
      FOREACH op IN ARRAY operators LOOP
        EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.planted)', op, a, b);
      END LOOP;
    END LOOP;
  END LOOP;
END $plant$;
CREATE FUNCTION public.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT nextval('public.executions')::text $$;
CREATE FUNCTION public.set_config(varchar, varchar, boolean) RETURNS text LANGUAGE sql AS $$ SELECT nextval('public.executions')::text $$;
CREATE FUNCTION public.current_schemas(boolean) RETURNS name[] LANGUAGE sql AS $$ SELECT ARRAY[nextval('public.executions')::text::name] $$;
CREATE FUNCTION public.pg_backend_pid() RETURNS int LANGUAGE sql AS $$ SELECT nextval('public.executions')::int $$;
CREATE FUNCTION public.pg_advisory_xact_lock(int) RETURNS int LANGUAGE sql AS $$ SELECT nextval('public.executions')::int $$;
CREATE FUNCTION public.to_regclass(varchar) RETURNS regclass LANGUAGE sql AS $$ SELECT nextval('public.executions')::text::regclass $$;
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT to_timestamp(nextval('public.executions')) $$;
CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT to_timestamp(nextval('public.executions')) $$;
CREATE VIEW public.pg_prepared_statements AS SELECT 'x'::text AS name FROM nextval('public.executions');
CREATE VIEW public.pg_stat_activity AS SELECT nextval('public.executions') AS pid`

// besieged is a database in which a role may create in public, as in any before
// PostgreSQL 15, and has planted what it can.
func besieged(t *testing.T) (admin string) {
	t.Helper()
	admin = pgtest.New(t)
	attacker := pgtest.NewRole(t, admin, "USAGE, CREATE ON SCHEMA public")
	exec(t.Context(), t, attacker, map[string]string{"postgres": plantSQL})
	exec(t.Context(), t, admin, map[string]string{"postgres": `SELECT 'a'::varchar = 'b'::varchar`})
	if !executed(t, admin) {
		t.Fatal("nothing planted runs even where the path has it: the test proves nothing")
	}
	exec(t.Context(), t, attacker, map[string]string{"postgres": `ALTER SEQUENCE public.executions RESTART`})
	return admin
}

func executed(t *testing.T, admin string) bool {
	t.Helper()
	return count(t, admin, `SELECT count(*) FROM public.executions WHERE is_called`) > 0
}

// role is a role that owns the schema ours, and may create in public as every role may.
func (s siege) role(t *testing.T, admin string) string {
	t.Helper()
	exec(t.Context(), t, admin, map[string]string{"postgres": `CREATE SCHEMA ours`})
	role := pgtest.NewRole(t, admin, "USAGE, CREATE ON SCHEMA ours", "USAGE, CREATE ON SCHEMA public")
	if s.path != "" {
		config, err := pgx.ParseConfig(role)
		if err != nil {
			t.Fatal(err)
		}
		exec(t.Context(), t, admin, map[string]string{"postgres": fmt.Sprintf(`ALTER ROLE %s SET search_path = %s`, pgx.Identifier{config.User}.Sanitize(), s.path)})
	}
	return role
}

// siege is one way to the database, and the search_path of the role.
type siege struct {
	name, path string
	through    func(t *testing.T, admin, role string) string
	tables     string // where they are then
}

// TestNobodyElseRunsCodeAsOurRole does all that a node, an operator and the doctor do
// in a database in which others have planted operators and functions.
func TestNobodyElseRunsCodeAsOurRole(t *testing.T) {
	t.Parallel()
	direct := func(_ *testing.T, _, role string) string { return role }
	for _, s := range []siege{
		{"the path of the server", "", direct, "public"},
		{"public before pg_catalog", "public, pg_catalog", direct, "public"},
		{"the path of the URL", "public, pg_catalog", func(t *testing.T, _, role string) string {
			return with(t, role, url.Values{"search_path": {"ours,public"}})
		}, "ours"},
		{"a pooler in session mode", "public, pg_catalog", func(t *testing.T, _, role string) string {
			return bouncer(t, role, bouncertest.Session)
		}, "public"},
		// The stand-in knows no passwords, so it is the administrator's path that counts.
		{"a pooler in transaction mode", "", func(t *testing.T, admin, _ string) string {
			exec(t.Context(), t, admin, map[string]string{"postgres": `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = ours', current_database()); END $$`})
			return bouncertest.StandIn(t, admin)
		}, "ours"},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			admin := besieged(t)
			s.work(t, s.through(t, admin, s.role(t, admin)))
			if executed(t, admin) {
				t.Error("a planted operator or function ran as our role")
			}
			if n := count(t, admin, `SELECT count(*) FROM `+s.tables+`.obs_cursor`); n != 1 {
				t.Errorf("%d cursors in %s", n, s.tables)
			}
		})
	}
}

func (s siege) work(t *testing.T, way string) {
	t.Helper()
	boot := uuid.NewString()
	w := watchAs(t, way, boot, eager)
	w.live.Start(t.Context())
	a := acquire(t, w.db, "order-observer-poll")
	if r, err := w.db.Leases().Renew(t.Context(), []lock.Grant{a}); err != nil || r[0] != lock.Renewed {
		t.Fatalf("renew: %v, %v", r, err)
	}
	store := w.db.Store(a)
	for _, n := range []int{3, 2500} { // By one statement, and by COPY.
		mustCommit(t, store, chunk(cursorOf(t, store, "orders"), n))
	}
	if _, err := w.db.Clean(t.Context(), retention()); err != nil {
		t.Error(err)
	}
	if err := w.db.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if err := general(w.db).NoteFailures(t.Context(), []lock.Failure{{Region: a.Region, Key: a.Key, Count: 1}}); err != nil {
		t.Error(err)
	}
	if s, err := general(w.db).Stats(t.Context(), a.Region, 1); err != nil || len(s.Failed) != 1 {
		t.Errorf("figures of the locks: %+v, %v", s, err)
	}
	if err := w.db.Leases().Release(t.Context(), a); err != nil {
		t.Error(err)
	}
	found, err := examine.Run(t.Context(), examine.Options{URL: way})
	if err != nil || len(found.Blind) > 0 {
		t.Errorf("examined: %v, blind for %+v", err, found.Blind)
	}
	w.quit()
}

// TestTableOfAStrangerIsRefused has another role put a table of our name into a schema
// that comes before ours.
func TestTableOfAStrangerIsRefused(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"INT_LOCK", "obs_migration"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			admin := pgtest.New(t)
			exec(t.Context(), t, admin, map[string]string{"postgres": `CREATE SCHEMA before; CREATE SCHEMA ours`})
			role := pgtest.NewRole(t, admin, "USAGE ON SCHEMA before", "USAGE, CREATE ON SCHEMA ours")
			attacker := pgtest.NewRole(t, admin, "USAGE, CREATE ON SCHEMA before")
			if err := open(t, with(t, role, url.Values{"search_path": {"ours"}})).Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			both := with(t, role, url.Values{"search_path": {"before,ours"}})
			if err := open(t, both).Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			exec(t.Context(), t, attacker, map[string]string{"postgres": `CREATE TABLE before.` + table + ` (version_id int)`})
			err := open(t, both).Ready(t.Context())
			if err == nil || sqldb.Unavailable(err) || !strings.Contains(err.Error(), table+" is in before, of the role ") || !strings.Contains(err.Error(), "use ?search_path=NAME") {
				t.Errorf("a node that starts says %v", err)
			}
		})
	}
}
