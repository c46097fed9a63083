package app_test

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

const refusedYAML = `
node: {name: %s}
database: {url: %q}
scheduler: {observer: {fixed-delay: 1s, shutdown-timeout: 5s, lock: {ttl: 15s}}}
sources: {erp: {url: %q, password-file: %q}}
observers:
  - {id: orders, type: order, source: erp, table: orders, key: id, timestamp: at}
%s
sinks: [{id: file, type: file, path: %q}]
http: {listen: "127.0.0.1:0"}
`

const more = `
  - {id: returns, type: returns, event: Returned, source: erp, table: orders, key: id, timestamp: at}
  - {id: tasks, type: wes, source: erp, table: orders, key: id, timestamp: at}`

// erp is a source behind a proxy that counts its logons.
type erp struct {
	url, password string
	proxy         *netfault.Proxy
	coordination  string
	db            *sql.DB
}

func newERP(t *testing.T) erp {
	t.Helper()
	database := pgtest.New(t)
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE orders (id text PRIMARY KEY, at timestamptz NOT NULL);
		CREATE INDEX ON orders (at, id); INSERT INTO orders VALUES ('one', now())`); err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(pgtest.NewRole(t, database, "SELECT ON orders"))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := parsed.User.Password()
	e := erp{password: password, proxy: netfault.Start(t, parsed.Host), coordination: pgtest.New(t)}
	parsed.Host, parsed.User = e.proxy.Addr(), url.User(parsed.User.Username())
	e.url = parsed.String()
	if e.db, err = sql.Open("pgx", e.coordination); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.db.Close() })
	return e
}

// place makes the configuration of a node with that password.
func (e erp) place(t *testing.T, node, password, observers string) place {
	t.Helper()
	folder := t.TempDir()
	secret, path := filepath.Join(folder, "password"), filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(secret, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(refusedYAML, node, e.coordination, e.url, secret, observers, filepath.Join(folder, "events.jsonl"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return place{folder: folder, config: cfg}
}

// noted complains until the account is refused to all nodes.
func (e erp) noted(t *testing.T) func() error {
	return func() error {
		if n := count(t, e.db, `SELECT count(*) FROM obs_account`); n != 1 {
			return fmt.Errorf("%d refused accounts, want 1", n)
		}
		return nil
	}
}

// refused complains until so many observers were told of the account.
func (e erp) refused(t *testing.T, want int) func() error {
	return func() error {
		if n := count(t, e.db, `SELECT count(*) FROM obs_cursor WHERE last_error LIKE 'credentials: %' AND retry_at > now()`); n != want {
			return fmt.Errorf("%d observers are refused, want %d", n, want)
		}
		return nil
	}
}

// shown complains unless the page of the node names the refused account and why,
// and nothing that its secret could be guessed from.
func (e erp) shown(t *testing.T, node *app.App, account string) {
	t.Helper()
	eventually(t, func() error { return page(t, node, "/", ">"+html.EscapeString(account)+"</th>", "28P01") })
	var salt, digest []byte
	if err := e.db.QueryRowContext(t.Context(), `SELECT salt, digest FROM obs_account`).Scan(&salt, &digest); err != nil {
		t.Fatal(err)
	}
	text := says(t, node, "/", "28P01")
	for _, secret := range []string{e.password, "wrong", hex.EncodeToString(salt), hex.EncodeToString(digest), string(digest)} {
		if strings.Contains(text, secret) {
			t.Errorf("the page holds %q:\n%s", secret, text)
		}
	}
}

// TestWrongPasswordIsTriedOnceByTheCluster shows two nodes with a wrong password:
// one failed logon, which every other node and command is told of. Once a node
// has the right one it polls again, though its observers had half an hour to
// wait.
func TestWrongPasswordIsTriedOnceByTheCluster(t *testing.T) {
	t.Parallel()
	e := newERP(t)
	first := e.place(t, "a", "wrong", "").start(t)
	ready(t, first)
	eventually(t, e.refused(t, 1))
	eventually(t, e.noted(t))

	b := e.place(t, "b", "wrong", more)
	second := b.start(t)
	eventually(t, e.refused(t, 3))
	op := b.operator(t)
	var err error
	eventually(t, func() error {
		if _, err = op.PollOnce(t.Context(), "orders", admin.By{Actor: "test"}); errors.Is(err, lock.ErrHeld) {
			return err // A node has it for a moment.
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "28P01") || strings.Contains(err.Error(), e.password) {
		t.Errorf("a person's poll: %v", err)
	}
	report, err := op.Report(t.Context())
	if err != nil || len(report.Accounts) != 1 || report.Accounts[0].Node != "a" {
		t.Errorf("refused accounts %+v, %v", report.Accounts, err)
	}
	if len(report.Accounts) == 1 {
		e.shown(t, second, report.Accounts[0].ID)
	}
	if n := e.proxy.Stats().Connections; n != 1 {
		t.Errorf("%d logons with a wrong password, want 1", n)
	}
	stop(t, second)

	right := e.place(t, "b", e.password, more)
	stop(t, right.start(t)) // Stopping at once is no harm either.
	third := right.start(t)
	eventually(t, func() error {
		if n := count(t, e.db, `SELECT count(DISTINCT stream) FROM obs_event`); n != 3 {
			return fmt.Errorf("%d observers have an event, want 3", n)
		}
		return nil
	})
	stop(t, third)
	if n := count(t, e.db, `SELECT count(*) FROM obs_account`); n != 1 {
		t.Errorf("%d refused accounts: the node that still has the old password would try it", n)
	}
}

// TestValidateTriesAWrongPasswordOnce has three observers on one account, and a
// coordination database that has no schema yet.
func TestValidateTriesAWrongPasswordOnce(t *testing.T) {
	t.Parallel()
	e := newERP(t)
	p := e.place(t, "a", "wrong", more)
	v := admin.Validate(t.Context(), admin.ValidateOptions{Config: p.config, Logger: p.options().Logger, Timeout: patience, Sample: 1})
	if len(v.Findings) != 1 || v.Findings[0].Subject != "source erp" || wiring.FaultOf(v.Err()) != wiring.Misconfigured {
		t.Errorf("findings %+v, fault %v", v.Findings, wiring.FaultOf(v.Err()))
	}
	if n := e.proxy.Stats().Connections; n != 1 {
		t.Errorf("%d logons with a wrong password, want 1", n)
	}
	right := e.place(t, "a", e.password, more)
	v = admin.Validate(t.Context(), admin.ValidateOptions{Config: right.config, Logger: p.options().Logger, Timeout: patience, Sample: 1})
	if v.Err() != nil || len(v.Observers) != 3 {
		t.Fatalf("with the right password: %+v", v)
	}
	for _, o := range v.Observers {
		if len(o.Sample) != 1 || !strings.Contains(o.SQL, `"orders"`) || o.Plan == "" {
			t.Errorf("observer %+v", o)
		}
	}
}

// TestResumeLetsTheAccountBeTriedAgain is for a secret that did not change: the
// account was fixed over there.
func TestResumeLetsTheAccountBeTriedAgain(t *testing.T) {
	t.Parallel()
	e := newERP(t)
	p := e.place(t, "a", "wrong", "")
	ready(t, p.start(t))
	eventually(t, e.refused(t, 1))
	eventually(t, e.noted(t))
	user := p.config.Sources["erp"].URL
	parsed, err := url.Parse(user.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	source, err := sql.Open("pgx", p.direct(t, parsed))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	if _, err := source.ExecContext(t.Context(), `ALTER ROLE "`+parsed.User.Username()+`" PASSWORD 'wrong'`); err != nil {
		t.Fatal(err)
	}
	op := p.operator(t)
	if changed, err := op.Resume(t.Context(), "orders", admin.By{Actor: "test"}); !changed || err != nil {
		t.Errorf("resumed: %v, %v", changed, err)
	}
	eventually(t, func() error {
		if n := count(t, e.db, `SELECT count(*) FROM obs_event`); n != 1 {
			return fmt.Errorf("%d events, want 1", n)
		}
		return nil
	})
	if n := count(t, e.db, `SELECT count(*) FROM obs_account`); n != 0 {
		t.Errorf("%d refused accounts", n)
	}
	eventually(t, e.refused(t, 0)) // The poll is noted after its event.
	if changed, err := op.Resume(t.Context(), "orders", admin.By{Actor: "test"}); changed || err != nil {
		t.Errorf("resumed with nothing to end: %v, %v", changed, err)
	}
}

// direct is the URL of the server's owner, for the database of a source.
func (p place) direct(t *testing.T, source *url.URL) string {
	t.Helper()
	owner, err := url.Parse(p.config.Database.URL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	owner.Path = source.Path
	return owner.String()
}
