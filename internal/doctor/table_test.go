package doctor_test

import (
	"testing"

	"github.com/observerd/observerd/internal/doctor"
)

// superuser is the check that the role of the tests does not pass.
const superuser = "rights"

// TestHealthyTables has nothing to say of either generation of Spring's table,
// before and after our migration, nor of our own.
func TestHealthyTables(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"springs 6": springSix, "springs 7": springSeven, "none": "SELECT 1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := postgres(t, script)
			found := p.examine(t, 0)
			healthy(t, found, superuser, "nodes")
			says(t, found, "schema", doctor.Note, "no node of observerd has used this database yet")
			if name == "none" {
				says(t, found, "lock-table", doctor.Note, "there is no table INT_LOCK yet")
			}
			p.migrate(t)
			found = p.examine(t, 0)
			healthy(t, found, superuser, "nodes")
			says(t, found, "schema", doctor.OK, "that of this binary")
			generation := "4 columns"
			if name == "springs 7" {
				generation = "EXPIRED_AFTER"
			}
			says(t, found, "lock-table", doctor.OK, generation)
		})
	}
}

// TestSickTables makes each fault of the table that there is a word for.
func TestSickTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		sql      []string
		severity doctor.Severity
		parts    []string
	}{
		{"somebody else's", []string{`CREATE TABLE int_lock (id INTEGER PRIMARY KEY)`}, doctor.Problem, []string{"the column LOCK_KEY is missing", "not Spring's table", "ends at once"}},
		{"nullable expiry", []string{springSix, `ALTER TABLE int_lock ADD expired_after TIMESTAMP`}, doctor.Problem, []string{"EXPIRED_AFTER may be NULL", "SET NOT NULL"}},
		{"expiry by default", []string{springSix, `ALTER TABLE int_lock ADD expired_after TIMESTAMP NOT NULL DEFAULT now()`}, doctor.Problem, []string{"EXPIRED_AFTER has the default", "DROP DEFAULT"}},
		{"no primary key", []string{springSix, `ALTER TABLE int_lock DROP CONSTRAINT int_lock_pk`}, doctor.Problem, []string{"no primary key"}},
		{"another primary key", []string{springSix, `ALTER TABLE int_lock DROP CONSTRAINT int_lock_pk, ADD PRIMARY KEY (lock_key)`}, doctor.Problem, []string{"no primary key of LOCK_KEY and REGION"}},
		{"short client id", []string{springSix, `ALTER TABLE int_lock ALTER client_id TYPE CHAR(32)`}, doctor.Problem, []string{"CLIENT_ID holds 32 characters", "a lock that another holds"}},
		{"short key", []string{springSix, `ALTER TABLE int_lock ALTER lock_key TYPE VARCHAR(30)`}, doctor.Problem, []string{"LOCK_KEY holds 30 characters"}},
		{"time with a zone", []string{springSix, `ALTER TABLE int_lock ALTER created_date TYPE TIMESTAMPTZ`}, doctor.Problem, []string{"CREATED_DATE is timestamp with time zone"}},
		{"whole seconds", []string{springSix, `ALTER TABLE int_lock ALTER created_date TYPE TIMESTAMP(0)`}, doctor.Problem, []string{"CREATED_DATE keeps 0 decimals", "ends at once"}},
		{"a key that is checked too late", []string{springSix, `ALTER TABLE int_lock DROP CONSTRAINT int_lock_pk, ADD PRIMARY KEY (lock_key, region) DEFERRABLE`}, doctor.Problem, []string{"no primary key"}},
		{"unlogged", []string{springSix, `ALTER TABLE int_lock SET UNLOGGED`}, doctor.Problem, []string{"UNLOGGED", "SET LOGGED"}},
		{"a trigger", []string{
			springSix, `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`,
			`CREATE TRIGGER audit AFTER INSERT ON int_lock FOR EACH ROW EXECUTE FUNCTION f()`,
		}, doctor.Warning, []string{"triggers hang on INT_LOCK: audit (public.f() has no search_path)", "ALTER FUNCTION"}},
		{"a rule", []string{
			springSix, `CREATE RULE audit AS ON INSERT TO int_lock DO ALSO NOTIFY taken`,
		}, doctor.Problem, []string{"rules hang on INT_LOCK: audit"}},
		{"row security", []string{springSix, `ALTER TABLE int_lock ENABLE ROW LEVEL SECURITY`}, doctor.Warning, []string{"row level security"}},
		{"a column more that must be filled", []string{springSix, `ALTER TABLE int_lock ADD note TEXT NOT NULL`}, doctor.Problem, []string{"must be filled in"}},
		{"a view", []string{springSix, `ALTER TABLE int_lock RENAME TO locks`, `CREATE VIEW int_lock AS SELECT * FROM locks`}, doctor.Problem, []string{"is not a table"}},
		{"two tables", []string{springSix, `CREATE SCHEMA java`, `CREATE TABLE java.int_lock (LIKE int_lock)`}, doctor.Note, []string{"in the schema public; there is another one in java"}},
		{"in another schema", []string{`CREATE SCHEMA java`, `CREATE TABLE java.int_lock (id INTEGER)`}, doctor.Note, []string{"there is no table INT_LOCK yet", "search_path"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			says(t, postgres(t, c.sql...).examine(t, 0), "lock-table", c.severity, c.parts...)
		})
	}
}

// TestTableThatIsGone covers a table that was dropped after our migration.
func TestTableThatIsGone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *subject) {
		p.exec(t, `DROP TABLE int_lock`)
		says(t, p.examine(t, 0), "lock-table", doctor.Problem, "there is no table INT_LOCK")
	})
}
