package app_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/springtest"
)

// TestForeignLockTable has an INT_LOCK that another role has made, with code on it.
// The first migration says whose it is, and each start what hangs on it.
func TestForeignLockTable(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	stranger := pgtest.NewRole(t, database, "USAGE, CREATE ON SCHEMA public")
	ours := pgtest.NewRole(t, database, "USAGE, CREATE ON SCHEMA public")
	asRole(t, stranger, springtest.Spring6.Table(), `GRANT ALL ON int_lock TO PUBLIC`,
		`CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
		`CREATE TRIGGER spying AFTER INSERT OR UPDATE ON int_lock FOR EACH ROW EXECUTE FUNCTION spy()`,
		`CREATE RULE telling AS ON DELETE TO int_lock DO ALSO NOTIFY taken`)
	p := as(t, ours)
	const owner, code = "INT_LOCK is there already and belongs to another role", "Code of other roles on INT_LOCK"
	name := roleOf(t, stranger)
	for start := range 2 {
		log := p.readied(t)
		if told := lineWith(log, owner); (start == 0) != strings.Contains(told, `"owner":"`+name+`"`) {
			t.Errorf("start %d says of the owner %q", start, told)
		}
		told := lineWith(log, code)
		if !strings.Contains(told, `"level":"WARN"`) || !strings.Contains(told, "trigger spying, which calls public.spy of the role "+name) ||
			!strings.Contains(told, "rule telling of the role "+name) {
			t.Errorf("start %d says of what hangs there %q", start, told)
		}
	}
}

// TestOwnLockTable has one that our role has made, with a trigger of its own, and
// none at all.
func TestOwnLockTable(t *testing.T) {
	t.Parallel()
	own := func(setting string) []string {
		return []string{
			springtest.Spring6.Table(), `CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql ` + setting + ` AS 'BEGIN RETURN NULL; END'`,
			`CREATE TRIGGER audit AFTER INSERT ON int_lock FOR EACH ROW EXECUTE FUNCTION audit()`,
		}
	}
	for name, c := range map[string]struct {
		before []string
		want   string
	}{
		"none":               {},
		"own":                {own("SET search_path = public"), ""},
		"own without a path": {own(""), `"functions":["public.audit()"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours := pgtest.NewRole(t, pgtest.New(t), "USAGE, CREATE ON SCHEMA public")
			asRole(t, ours, c.before...)
			if told := lineWith(as(t, ours).readied(t), "INT_LOCK"); (told == "") != (c.want == "") || !strings.Contains(told, c.want) {
				t.Errorf("the log says %q", told)
			}
		})
	}
}

// as makes the place of a node that does not poll, with that coordination database.
func as(t *testing.T, coordination string) place {
	t.Helper()
	p := place{folder: t.TempDir()}
	path := filepath.Join(p.folder, "config.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "database: {url: %q}\nhttp: {listen: \"127.0.0.1:0\"}\n", coordination), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.config, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}}); err != nil {
		t.Fatal(err)
	}
	return p
}

// readied runs a node until it is ready, and returns its log.
func (p place) readied(t *testing.T) string {
	t.Helper()
	node, log := p.startLogged(t)
	ready(t, node)
	stop(t, node)
	return log.String()
}

func lineWith(log, text string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

func asRole(t *testing.T, address string, statements ...string) {
	t.Helper()
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
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
