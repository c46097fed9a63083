package doctor_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/lockdb/examine"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestNothingIsSaidOfWhatWasNotSeen has a role that may connect, and call no
// function but those without which nobody connects as a node does. Each check that would judge the database all the same finds fsync on,
// no table and no node.
func TestNothingIsSaidOfWhatWasNotSeen(t *testing.T) {
	t.Parallel()
	p := postgres(t, `REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA pg_catalog FROM PUBLIC`)
	p.url = pgtest.NewRole(t, p.url, `EXECUTE ON FUNCTION pg_backend_pid, set_config, current_schemas, unnest(anyarray),
		pg_has_role(oid, text), pg_has_role(oid, oid, text), has_schema_privilege(oid, text), current_database, aclexplode, acldefault,
		nameeq, oideq, oidne, chareq, texteq, int8lt, int4eq, array_in, textin, namein, charin, name(text), text(name)`)
	found := p.examine(t, 0)
	for _, part := range []string{
		status.PartClock, status.PartServer, status.PartTable, status.PartHangers,
		status.PartRole, status.PartTime,
	} {
		says(t, found, "look", doctor.Problem, part, "permission denied", "nothing else is judged", "Grant the role what it lacks")
	}
	for _, f := range found {
		if f.Check != "look" {
			t.Errorf("%s is judged: %s: %s", f.Check, f.Severity, f.Saw)
		}
	}
}

// TestALockedTableIsAFinding has a session that has forgotten its transaction.
func TestALockedTableIsAFinding(t *testing.T) {
	t.Parallel()
	p := admit(t, pgtest.New(t))
	p.migrate(t)
	tx, err := p.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(t.Context(), `LOCK TABLE obs_cursor`)
	says(t, p.examine(t, 0), "look", doctor.Problem, "lock timeout (SQLSTATE 55P03)", "end the session that has locked a table (pg_blocking_pids)")
	if err := errors.Join(err, tx.Rollback()); err != nil {
		t.Error(err)
	}
}

// TestOneReasonIsToldOnce hides several parts behind the same words.
func TestOneReasonIsToldOnce(t *testing.T) {
	t.Parallel()
	found := doctor.Judge(status.Examination{Backend: "postgres", Blind: []status.Blind{
		{Part: status.PartServer, Reason: "permission denied"}, {Part: status.PartRole, Reason: "another reason"},
		{Part: status.PartClock, Reason: "permission denied"},
	}}, doctor.Expectation{})
	says(t, found, "look", doctor.Problem, "the server, the clock could not be read: permission denied")
	says(t, found, "look", doctor.Problem, "the role could not be read: another reason")
	found = slices.DeleteFunc(found, func(f doctor.Finding) bool { return f.Check != "look" })
	if len(found) != 2 {
		t.Errorf("two reasons are told in %d findings:\n%s", len(found), printed(found))
	}
}

// TestNothingToExamine has a server that lets nobody in, and a file that is no
// database: there is nothing to say of the parts, and no right is missing there.
func TestNothingToExamine(t *testing.T) {
	t.Parallel()
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	if err := os.WriteFile(garbage, []byte("this is no database, but long enough to be taken for one: "+string(make([]byte, 4096))), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _, _ := strings.Cut(pgtest.New(t), "?")
	for name, want := range map[string]struct{ url, words string }{
		"a wrong setting":  {url + "?sslmode=disable&statement_timeout=nonsense", "cannot be examined: its server refuses a setting that is in the URL; fix that there, or correct database.url: "},
		"no such database": {url + "_none?sslmode=disable", "cannot be examined: its server has no database of that name; fix that there, or correct database.url: "},
		"no database":      {"sqlite:" + garbage, "garbage.db is left as it is; name another file at database.url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := examine.Run(t.Context(), examine.Options{URL: want.url})
			if err == nil || !strings.Contains(err.Error(), want.words) || sqldb.Unavailable(err) || len(found.Blind) > 0 {
				t.Errorf("%v, and blind for %+v; want %q", err, found.Blind, want.words)
			}
		})
	}
}

// TestDamagedPart overwrites INT_LOCK in a file whose other parts can be read.
func TestDamagedPart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "observerd.db")
	p := admit(t, "sqlite:"+path)
	node := p.observerd(t)
	if err := errors.Join(node.Migrate(t.Context()), node.Close()); err != nil {
		t.Fatal(err)
	}
	var size, root int64
	err := p.db.QueryRowContext(t.Context(), `SELECT page_size, rootpage FROM pragma_page_size, sqlite_schema WHERE lower(name) = 'int_lock'`).Scan(&size, &root)
	if err = errors.Join(err, p.db.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(bytes.Repeat([]byte{0xff}, int(size)), (root-1)*size)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	found := p.examine(t, 0)
	says(t, found, "look", doctor.Problem, status.PartRows+" could not be read: ", "malformed", "move it away and bring back a backup")
	if text := printed(found); strings.Contains(text, "Grant the role") {
		t.Errorf("a file has no role:\n%s", text)
	}
}

// TestTablesThatAreHidden takes the right to look at one table after the other. Nothing
// is judged then but the rights.
func TestTablesThatAreHidden(t *testing.T) {
	t.Parallel()
	p := postgres(t)
	p.migrate(t)
	tables := []string{"int_lock", "obs_lock", "obs_node", "obs_schedule", "obs_sink_offset", "obs_cursor", "obs_migration"}
	for _, hidden := range tables {
		// Grants on one database get in each other's way, so they are made here.
		var grants []string
		for _, table := range tables {
			if table != hidden {
				grants = append(grants, "SELECT ON "+table)
			}
		}
		q := *p
		q.url = pgtest.NewRole(t, p.url, grants...)
		t.Run(hidden, func(t *testing.T) {
			t.Parallel()
			found := q.examine(t, 0)
			says(t, found, "look", doctor.Problem, hidden)
			says(t, found, "rights", doctor.Problem, "SELECT on "+hidden)
			for _, f := range found {
				if f.Check != "look" && f.Check != "rights" {
					t.Errorf("%s is judged: %s: %s", f.Check, f.Severity, f.Saw)
				}
			}
		})
	}
}
