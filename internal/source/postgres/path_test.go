package postgres_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// plantsSQL is what a role does that may create in public: it puts operators between
// all pairs of simple types there, and functions, aggregates, views and types named
// as those of the catalogue, some of which fit its arguments better. Each takes an
// advisory lock of its session when it runs, which a read-only transaction may do and
// no ROLLBACK undoes. What the locks stand for is told by public.planted.
const plantsSQL = `
SET search_path = pg_catalog;
CREATE TABLE public.planted (n int GENERATED ALWAYS AS IDENTITY, what text);
CREATE FUNCTION public.noted(n int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN PERFORM pg_catalog.pg_advisory_lock_shared(1058, n); RETURN true; END';
CREATE PROCEDURE public.plant(what text, ddl text) LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  INSERT INTO public.planted (what) VALUES (plant.what) RETURNING planted.n INTO n;
  EXECUTE replace(ddl, '#', n::text);
END $$;
DO $do$
DECLARE
  types text[] := '{name,text,varchar,"char",int2,int4,int8,oid,numeric,timestamptz}';
  r record;
BEGIN
  FOR r IN SELECT op, lefts.l, rights.r, CASE op WHEN '||' THEN 'text' WHEN '*' THEN 'numeric' WHEN '-' THEN 'int8' ELSE 'bool' END AS result
             FROM unnest('{=,<>,<,>,<=,>=,~~,!~~,||,*,-}'::text[]) op, unnest(types) lefts(l), unnest(types) rights(r) LOOP
    CALL public.plant(format('%s(%s, %s)', r.op, r.l, r.r), format($$
      CREATE FUNCTION public.op_#(%2$s, %3$s) RETURNS %4$s LANGUAGE plpgsql AS 'BEGIN PERFORM public.noted(#); RETURN NULL; END';
      CREATE OPERATOR public.%1$s (FUNCTION = public.op_#, LEFTARG = %2$s, RIGHTARG = %3$s)$$, r.op, r.l, r.r, r.result));
  END LOOP;
  FOR r IN SELECT p.proname, pg_get_function_arguments(p.oid) AS args, pg_get_function_result(p.oid) AS result,
                  p.proretset OR p.proargmodes IS NOT NULL AS rows
             FROM pg_proc p
            WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT 'anyrange'::regtype = ANY (p.proargtypes)
              AND NOT 'anymultirange'::regtype = ANY (p.proargtypes)
              AND p.proname = ANY ('{lower,format_type,has_table_privilege,has_schema_privilege,pg_table_is_visible,quote_ident,current_database,
                    pg_backend_pid,pg_control_system,pg_control_checkpoint,pg_control_recovery,statement_timestamp,extract,date_part,pg_is_in_recovery,
                    pg_last_xact_replay_timestamp,current_setting,set_config,generate_series,current_schemas,unnest,aclexplode,acldefault,
                    pg_has_role,pg_get_userbyid,int8,text,numeric}')
  LOOP
    CALL public.plant(r.proname || '(' || r.args || ')', format(
      'CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS ''BEGIN PERFORM public.noted(#); RETURN%s; END''',
      r.proname, r.args, r.result, CASE WHEN r.rows THEN '' ELSE ' NULL' END));
  END LOOP;
  FOR r IN SELECT * FROM (VALUES ('lower', 'name', 'text'), ('quote_ident', 'name', 'text'), ('format_type', 'oid, int2', 'text'),
      ('generate_series', 'int4, int2', 'SETOF int4'), ('to_regclass', 'name', 'regclass')) v(name, args, result) LOOP
    CALL public.plant(r.name || '(' || r.args || ')', format(
      'CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS ''BEGIN PERFORM public.noted(#); RETURN%s; END''',
      r.name, r.args, r.result, CASE WHEN r.result LIKE 'SETOF%' THEN '' ELSE ' NULL' END));
  END LOOP;
  FOR r IN SELECT * FROM (VALUES ('count', '*', 'int8'), ('min', 'timestamptz', 'timestamptz'), ('max', 'timestamptz', 'timestamptz'),
      ('bool_and', 'bool', 'bool'), ('string_agg', 'text, text', 'text'), ('string_agg', 'name, name', 'text'), ('string_agg', 'name, text', 'text')) v(name, args, state) LOOP
    CALL public.plant(r.name || '(' || r.args || ')', format($$
      CREATE FUNCTION public.step_#(%2$s) RETURNS %3$s LANGUAGE plpgsql AS 'BEGIN PERFORM public.noted(#); RETURN $1; END';
      CREATE AGGREGATE public.%1$I(%4$s) (SFUNC = public.step_#, STYPE = %3$s)$$, r.name, concat_ws(', ', r.state, nullif(r.args, '*')), r.state, r.args));
  END LOOP;
  FOR r IN SELECT c.relname, string_agg(quote_ident(a.attname), ', ') AS columns
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND a.atttypid <> 'anyarray'::regtype
            WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relname = ANY ('{pg_class,pg_namespace,pg_attribute,pg_type,pg_index,pg_am,
                  pg_opclass,pg_amop,pg_operator,pg_proc,pg_locks,pg_stat_activity,pg_prepared_xacts,pg_database,pg_inherits,pg_subscription_rel}')
            GROUP BY 1 LOOP
    CALL public.plant(r.relname, format('CREATE VIEW public.%1$I AS SELECT %2$s FROM pg_catalog.%1$I WHERE public.noted(#)', r.relname, r.columns));
  END LOOP;
  FOR r IN SELECT unnest('{oid,text,name,regnamespace,int8,timestamptz}'::text[]) AS name LOOP
    CALL public.plant('type ' || r.name, format('CREATE DOMAIN public.%1$I AS pg_catalog.%1$I CHECK (public.noted(#))', r.name));
  END LOOP;
END $do$`

// ran lists the plants that have run in the sessions of a role.
func ran(t *testing.T, owner *pgx.Conn, role string) []string {
	t.Helper()
	rows, err := owner.Query(t.Context(), `SELECT DISTINCT p.what FROM public.planted p
		JOIN pg_catalog.pg_locks l ON l.locktype = 'advisory' AND l.classid = 1058 AND l.objid = p.n::oid
		JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid AND a.usename = $1 AND a.datname = current_database()`, role)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// account is the name of the role in a URL.
func account(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.Username()
}

// everything does what the daemon and its commands do with a query.
func everything(t *testing.T, s *postgres.Source, q observer.Query) {
	t.Helper()
	did := func(what string, err error) {
		if err != nil {
			t.Errorf("%s of %s%s: %v", what, q.Table, q.SQL, err)
		}
	}
	_, err := s.Identity(t.Context())
	did("Identity", err)
	h, err := s.Horizon(t.Context(), q)
	did("Horizon", err)
	from, err := s.CursorAt(t.Context(), q, time.Now().Add(-time.Hour))
	did("CursorAt", err)
	in := observer.Range{From: from, Before: h.Cursor, Limit: 10}
	_, err = s.SQL(t.Context(), q, in)
	did("SQL", err)
	_, err = s.Plan(t.Context(), q, in)
	did("Plan", err)
	_, err = s.Describe(t.Context(), q)
	did("Describe", err)
	order, err := s.KeyOrder(t.Context(), q)
	did("KeyOrder", err)
	ranges := []observer.Range{{}, {From: from}, in}
	if order != "" {
		key := make([]string, len(q.Key))
		for i := range key {
			key[i] = "1"
		}
		ranges = append(ranges, observer.Range{ByKey: true, Order: order}, observer.Range{ByKey: true, Order: order, Key: observer.JoinKey(key)})
	}
	for _, in := range ranges {
		rows, err := s.Read(t.Context(), q, in)
		did("Read", err)
		if err != nil {
			continue
		}
		for rows.Next() {
		}
		did("Read", rows.Err())
		did("Close", rows.Close())
	}
}

// TestNothingOfThePathIsRun has a role that may create in public, where the reader
// looks names up, too.
func TestNothingOfThePathIsRun(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, `SET search_path = pg_catalog;
		CREATE TABLE public.orders (id int PRIMARY KEY, sku varchar(20), label text, price numeric, at timestamptz NOT NULL);
		INSERT INTO public.orders SELECT n, n, n, n, now() - interval '1 min' FROM generate_series(1, 3) n;
		CREATE TABLE public.stock (place int, sku varchar(20), at timestamp, PRIMARY KEY (sku, place));
		INSERT INTO public.stock SELECT id, sku, at FROM public.orders;
		CREATE VIEW public.recent AS SELECT * FROM public.orders;
		CREATE TABLE public.parts (id int, at date NOT NULL) PARTITION BY HASH (id);
		CREATE TABLE public.part PARTITION OF public.parts FOR VALUES WITH (MODULUS 1, REMAINDER 0)`)
	exec(t, connect(t, pgtest.NewRole(t, address, "CREATE, USAGE ON SCHEMA public")), plantsSQL)
	for _, path := range []string{"public", "public, pg_catalog"} {
		for _, pooled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, pooled %t", path, pooled), func(t *testing.T) {
				t.Parallel()
				role := pgtest.NewRole(t, address, "SELECT ON ALL TABLES IN SCHEMA public", "pg_read_all_stats")
				name, owner := account(t, role), connect(t, address) // A connection serves one test at a time.
				exec(t, owner, "SET search_path = pg_catalog; ALTER ROLE "+source.Quote(name)+" SET search_path = "+path)
				if pooled {
					role = bouncertest.Start(t, role, bouncertest.Options{Mode: bouncertest.Transaction}).URL()
				}
				s := open(t, postgres.Options{URL: role})
				for _, q := range []observer.Query{
					{Table: "orders", Key: []string{"id"}, Timestamp: "at"},
					{Table: "public.ORDERS", Key: []string{"id"}, Timestamp: "at"},
					{Table: "STOCK", Key: []string{"place", "sku"}, Timestamp: "at"},
					{Table: "recent", Key: []string{"id"}, Timestamp: "at"},
					{Table: "parts", Key: []string{"id"}, Timestamp: "at"},
					{SQL: "SELECT * FROM orders", Key: []string{"id"}, Timestamp: "at"},
				} {
					q.Stream = "orders"
					everything(t, s, q)
				}
				for _, missing := range []string{"ordrs", "public.ordrs"} {
					if _, err := s.Describe(t.Context(), observer.Query{Table: missing, Key: []string{"id"}}); err == nil || !strings.Contains(err.Error(), "orders") {
						t.Errorf("describe a table that is missing: %v", err)
					}
				}
				if found := ran(t, owner, name); len(found) > 0 {
					t.Errorf("statements of ours ran %d plants: %s", len(found), strings.Join(found, "  "))
				}
				// What a query says is looked up by the path: that much remains.
				sourcetest.ReadAll(t, s, observer.Query{SQL: "SELECT * FROM orders WHERE sku = sku", Key: []string{"id"}}, observer.Range{})
				if found := ran(t, owner, name); len(found) == 0 {
					t.Error("a query with an operator ran no plant: this test notices nothing")
				}
			})
		}
	}
}

// TestRisksOfThePath has schemas in which others may create, or have done so.
func TestRisksOfThePath(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	role := func(grants ...string) string { return source.Quote(account(t, pgtest.NewRole(t, address, grants...))) }
	other, lord := role(), role()
	vassal := role(lord)
	reader := pgtest.NewRole(t, address)
	self := source.Quote(account(t, reader))
	exec(t, owner, `CREATE SCHEMA wms; CREATE SCHEMA away; GRANT USAGE ON SCHEMA wms, public, away TO PUBLIC; CREATE TABLE wms.orders (id int PRIMARY KEY);
		GRANT SELECT ON wms.orders TO PUBLIC; GRANT CREATE ON SCHEMA away TO PUBLIC;
		CREATE EXTENSION citext SCHEMA wms; ALTER ROLE `+self+` SET search_path = wms, public, nowhere`)
	q := observer.Query{Table: "orders", Key: []string{"id"}}
	function := func(of, schema string) string {
		return fmt.Sprintf("CREATE FUNCTION %[2]s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION %[2]s.f() OWNER TO %[1]s", of, schema)
	}
	const dropped = "DROP FUNCTION wms.f()"
	for _, test := range []struct{ name, do, undo, saw, remedy string }{
		{name: "as it is made"},
		{"everybody", "GRANT CREATE ON SCHEMA wms TO PUBLIC", "REVOKE CREATE ON SCHEMA wms FROM PUBLIC", "schema wms, which is in the search_path of", "REVOKE CREATE ON SCHEMA wms FROM PUBLIC;"},
		{"a role", "GRANT CREATE ON SCHEMA public TO " + other, "REVOKE CREATE ON SCHEMA public FROM " + other, "schema public", "REVOKE CREATE ON SCHEMA public FROM role_"},
		{"the reader", "GRANT CREATE ON SCHEMA wms TO " + self, "REVOKE CREATE ON SCHEMA wms FROM " + self, "", ""},
		{"a schema of another", "ALTER SCHEMA wms OWNER TO " + lord, "ALTER TABLE wms.orders OWNER TO " + lord, "schema wms, which is in the search_path of " + strings.Trim(self, `"`) + ", belongs to role_", "ALTER ROLE"},
		{"the owner", "GRANT CREATE ON SCHEMA wms TO " + vassal, "REVOKE CREATE ON SCHEMA wms FROM " + vassal, "", ""},
		{"the owner's function", function(lord, "wms"), dropped, "", ""},
		{"a function", function(other, "wms"), dropped, "schema wms, which is in the search_path of " + strings.Trim(self, `"`) + ", has functions or operators of others", `\df+ wms.*`},
		{"an operator", function(lord, "wms") + "; CREATE OPERATOR wms.!! (FUNCTION = citext_eq, LEFTARG = citext, RIGHTARG = citext); ALTER OPERATOR wms.!! (citext, citext) OWNER TO " + other,
			dropped + "; DROP OPERATOR wms.!! (citext, citext)", "has functions or operators", `\do+ wms.*`},
		{"elsewhere", function(other, "away"), "", "", ""},
	} {
		exec(t, owner, "SET search_path = wms; "+test.do)
		s := open(t, postgres.Options{URL: reader})
		d, err := s.Describe(t.Context(), q)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", test.name, err)
		case test.saw == "" && len(d.Risks) > 0:
			t.Errorf("%s: %+v, want nothing", test.name, d.Risks)
		case test.saw != "" && (len(d.Risks) != 1 || !strings.Contains(d.Risks[0].Saw, test.saw) || !strings.Contains(d.Risks[0].Do, test.remedy)):
			t.Errorf("%s: %+v, want one that saw %q, with %q", test.name, d.Risks, test.saw, test.remedy)
		}
		exec(t, owner, test.undo)
	}
	query := observer.Query{Key: []string{"id"}}
	for text, risks := range map[string]int{"SELECT * FROM orders": 0, "SELECT 1 AS id": 1} {
		query.SQL = text
		if d, err := open(t, postgres.Options{URL: reader}).Describe(t.Context(), query); err != nil || len(d.Risks) != risks {
			t.Errorf("%s: %+v, %v, want %d", text, d.Risks, err, risks)
		}
	}
	exec(t, owner, "ALTER SCHEMA wms OWNER TO CURRENT_USER") // What a role owns is dropped with it.
}
