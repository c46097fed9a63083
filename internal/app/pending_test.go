package app_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/webtest"
)

const pendingYAML = `
node: {name: test-node}
database: {url: %q}
scheduler: {observer: {fixed-delay: 1s, shutdown-timeout: 5s, lock: {ttl: 15s}}}
sources:
  warehouse: {url: "sqlite:%[2]s/warehouse.db"}
  erp: {url: "%[3]s&passfile=%[2]s/passfile"}
  key: {url: "%[4]s&sslcert=%[2]s/server.pem&sslkey=%[2]s/server.key"}
  ca: {url: "mysql://reader:hunter2@127.0.0.1:1/shop?ssl-ca=%[2]s/ca.pem"}
  wallet: {url: "oracle://reader:hunter2@127.0.0.1:1/shop?wallet=%[2]s/wallet"}
  sealed: {url-file: "%[2]s/url"}
  locked: {url: %[5]q, password-file: "%[2]s/password"}
observers:
  - {id: stock, type: inventory, source: warehouse, table: inventory, key: [warehouse, sku]}
  - {id: erp, type: order, source: erp, table: orders, key: id, timestamp: at}
  - {id: key, type: order, source: key, table: orders, key: id, timestamp: at}
  - {id: ca, type: wes, source: ca, table: orders, key: id, timestamp: at}
  - {id: wallet, type: wes, source: wallet, table: orders, key: id, detect: snapshot}
  - {id: sealed, type: order, source: sealed, table: orders, key: id, timestamp: at}
  - {id: locked, type: order, source: locked, table: orders, key: id, timestamp: at}
sinks: [{id: file, type: file, path: "%[2]s/events.jsonl"}]
http: {listen: "127.0.0.1:0"}
`

// TestSourceThatLacksAFile has sources of which a file is not there, one that the URL
// names or one that holds URL or password: each fails alone, and names its file. One
// that appears is used.
func TestSourceThatLacksAFile(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	database := pgtest.New(t)
	statements(t, database, `CREATE TABLE orders (id text PRIMARY KEY, at timestamptz NOT NULL); INSERT INTO orders VALUES ('one', now())`)
	withKeys := strings.Replace(database, "sslmode=disable", "sslmode=allow", 1)
	path := filepath.Join(p.folder, "pending.yaml")
	account, err := url.Parse(pgtest.NewRole(t, database, "SELECT ON orders"))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := account.User.Password()
	account.User = url.User(account.User.Username())
	text := fmt.Appendf(nil, pendingYAML, p.config.Database.URL.Reveal(), p.folder, database, withKeys, account)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if p.config, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}}); err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{
		"erp": p.folder + "/passfile: no such file", "key": p.folder + "/server.key: no such file",
		"ca": p.folder + "/ca.pem: no such file", "wallet": p.folder + "/wallet/cwallet.sso: no such file",
		"sealed": path + ":11:22: sources.sealed.url-file: the file does not exist",
		"locked": "sources.locked.password-file: the file does not exist",
	}
	node := p.start(t)
	op := p.operator(t)
	eventually(t, func() error {
		report, err := op.Report(t.Context())
		if err != nil {
			return err
		}
		if len(report.Observers) != 7 {
			return fmt.Errorf("%d observers were polled", len(report.Observers))
		}
		for _, o := range report.Observers {
			if file, lacks := missing[o.ID]; lacks {
				if !strings.HasPrefix(o.LastError, "unreachable: ") || !strings.Contains(o.LastError, file) {
					return fmt.Errorf("%s fails with %q", o.ID, o.LastError)
				}
			} else if o.LastError != "" || o.Events == 0 {
				return fmt.Errorf("%s has %d events, %q", o.ID, o.Events, o.LastError)
			}
			if strings.Contains(o.LastError, "hunter2") {
				t.Errorf("a password is shown: %s", o.LastError)
			}
		}
		return nil
	})
	if status, page := get(t, node, "/readyz"); status != 200 {
		t.Errorf("the node is not ready: %s", page)
	}
	told(t, p.config, missing)

	// Written beside it and renamed, as a file should be that others may read any time.
	beside := t.TempDir()
	webtest.NewAuthority(t).WriteServer(beside, "reader")
	for _, name := range []string{"server.pem", "server.key"} {
		if err := os.Rename(filepath.Join(beside, name), filepath.Join(p.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	putFile(t, filepath.Join(p.folder, "url"), database)
	putFile(t, filepath.Join(p.folder, "password"), password)
	found := []string{"key", "locked", "sealed"}
	eventually(t, func() error {
		report, err := op.Report(t.Context())
		if err != nil {
			return err
		}
		if len(report.Observers) != 7 {
			return fmt.Errorf("%d observers were polled", len(report.Observers))
		}
		for _, o := range report.Observers {
			if slices.Contains(found, o.ID) && (o.LastError != "" || o.Events != 1) {
				return fmt.Errorf("%s has %d events, %q", o.ID, o.Events, o.LastError)
			}
		}
		return nil
	})
}

// putFile writes a file in one step.
func putFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestNodeWithoutTheURLChangesNoDefinition starts a node again that lacks the file of
// the URL now. It does not know which database that was, and must not take it for
// another one: then all of it would be read again.
func TestNodeWithoutTheURLChangesNoDefinition(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	file, path := filepath.Join(p.folder, "url"), filepath.Join(p.folder, "config.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open := fmt.Sprintf("url: %q", "sqlite:"+p.folder+"/warehouse.db")
	putFile(t, path, strings.Replace(string(text), open, fmt.Sprintf("url-file: %q", file), 1))
	putFile(t, file, "sqlite:"+p.folder+"/warehouse.db")
	load := func() {
		if p.config, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}}); err != nil {
			t.Fatal(err)
		}
	}
	load()
	node := p.start(t)
	op := p.operator(t)
	eventually(t, p.delivered(t, op, "orders", 1))
	stop(t, node)
	db, err := sql.Open("sqlite", p.config.Database.URL.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	known := func() (defined string) {
		err := db.QueryRowContext(t.Context(), `SELECT definition || ' ' || (marks ->> 'identity') FROM obs_cursor WHERE stream = 'orders'`).Scan(&defined)
		if err != nil {
			t.Fatal(err)
		}
		return defined
	}
	before := known()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	load()
	node = p.start(t)
	eventually(t, func() error {
		report, err := op.Report(t.Context())
		if err != nil {
			return err
		}
		for _, o := range report.Observers {
			if o.ID == "orders" && strings.Contains(o.LastError, "sources.warehouse.url-file") {
				return nil
			}
		}
		return errors.New("orders were not polled without the file")
	})
	stop(t, node)
	if after := known(); after != before {
		t.Errorf("the stream was defined as %q, and is as %q", before, after)
	}
}

// told sees that validate calls each missing file an error.
func told(t *testing.T, cfg *config.Config, missing map[string]string) {
	t.Helper()
	validation := admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)})
	for name, file := range missing {
		if !slices.ContainsFunc(validation.Findings, func(f admin.Finding) bool {
			return f.Severity == admin.SeverityError && f.Subject == "source "+name && strings.Contains(f.Text, file)
		}) {
			t.Errorf("%s: validate does not tell of %s:\n%+v", name, file, validation.Findings)
		}
	}
}

// TestCoordinationThatLacksAFile sees that the error names it.
func TestCoordinationThatLacksAFile(t *testing.T) {
	t.Parallel()
	p := setup(t, "postgres://observerd:hunter2@127.0.0.1:1/none?sslrootcert="+t.TempDir()+"/ca.pem")
	_, err := app.New(t.Context(), p.options())
	if err == nil || !strings.Contains(err.Error(), "/ca.pem: no such file") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want the name of the file", err)
	}
}
