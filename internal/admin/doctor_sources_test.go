package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// The first query of the standby is one that no server understands.
const standbyYAML = `
database: {url: %q}
sources:
  erp: {url: %q}
  down: {url: "postgres://reader:hunter2@127.0.0.1:1/none?sslmode=disable&connect_timeout=1"}
  shop: {url: "sqlite:%s/warehouse.db"}
observers:
  - {id: a, type: order, source: erp, table: no_such_table, key: id, timestamp: at}
  - {id: b, type: order, source: erp, table: orders, key: id, timestamp: at}
  - {id: c, type: order, source: down, table: orders, key: id, timestamp: at}
  - {id: d, type: order, source: shop, table: orders, key: order_id, timestamp: updated_at}
sinks: [{id: screen, type: stdout}]
`

// TestDoctorKnowsStandbys has a source that is a primary, and then a standby.
func TestDoctorKnowsStandbys(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	url := server.URL("postgres")
	run(t, url, `CREATE TABLE orders (id INTEGER PRIMARY KEY, at TIMESTAMPTZ NOT NULL)`)
	places := map[string]*config.Config{}
	for name, coordination := range map[string]string{"sqlite": lockdbtest.SQLite(t), "postgres": lockdbtest.Postgres(t, "")} {
		places[name] = load(t, fmt.Appendf(nil, standbyYAML, coordination, url, t.TempDir()))
	}
	check := func(severity doctor.Severity, saw string) {
		t.Helper()
		for name, cfg := range places {
			diagnosis, err := admin.Doctor(t.Context(), cfg, 0)
			if err != nil {
				t.Fatal(err)
			}
			said := map[doctor.Severity]string{}
			for _, f := range diagnosis.Findings {
				if f.Check == "sources" {
					said[f.Severity] += f.Saw + "\n"
				}
				if strings.Contains(f.Saw, "hunter2") {
					t.Errorf("a password is shown: %s", f.Saw)
				}
			}
			if len(said) != 2 || said[severity] != saw+"\n" || !strings.HasPrefix(said[doctor.Note], "source down could not be looked at: ") {
				t.Errorf("on %s the doctor says of the sources: %q, want a %s: %s", name, said, severity, saw)
			}
		}
	}
	check(doctor.OK, "source erp is no standby")
	if err := server.Demote(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(doctor.Warning, "source erp is a standby, which follows another server")
}

// The observers of the first source have no timestamp, so that the doctor does not ask
// whether it is a standby.
const pathYAML = `
database: {url: %q}
sources: {erp: {url: %q}, mrp: {url: %q}}
observers:
  - {id: a, type: order, source: erp, table: orders, key: id}
  - {id: b, type: inventory, source: erp, table: orders, key: id}
  - {id: c, type: order, source: mrp, table: orders, key: id}
  - {id: d, type: order, source: mrp, table: orders, key: id, timestamp: at}
sinks: [{id: screen, type: stdout}]
`

// TestPathOfASource has a schema in which every role may create. Each source is named
// once, however many observers it has.
func TestPathOfASource(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	run(t, url, `CREATE TABLE orders (id INTEGER PRIMARY KEY, at TIMESTAMPTZ NOT NULL); GRANT CREATE ON SCHEMA public TO PUBLIC`)
	cfg := load(t, fmt.Appendf(nil, pathYAML, lockdbtest.SQLite(t), url, url))
	const saw, remedy = "others than its owner may create in schema public", "REVOKE CREATE ON SCHEMA public FROM PUBLIC"
	var said []string
	for _, f := range admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute}).Findings {
		if strings.Contains(f.Text, saw) && strings.Contains(f.Text, remedy) {
			said = append(said, string(f.Severity)+" "+f.Subject)
		}
	}
	if want := []string{"warning source erp", "warning source mrp"}; !slices.Equal(said, want) {
		t.Errorf("validate tells of %q, want %q", said, want)
	}
	diagnosis, err := admin.Doctor(t.Context(), cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	said = nil
	for _, f := range diagnosis.Findings {
		if f.Check == "sources" {
			said = append(said, fmt.Sprintf("%s %.15s %t", f.Severity, f.Saw, strings.Contains(f.Saw, saw) && strings.Contains(f.Do, remedy)))
		}
	}
	slices.Sort(said)
	if want := []string{"ok source mrp is n false", "warning source erp: oth true", "warning source mrp: oth true"}; !slices.Equal(said, want) {
		t.Errorf("doctor says %q, want %q", said, want)
	}
}

func load(t *testing.T, yaml []byte) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, yaml, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// run runs a script in the database of that URL.
func run(t *testing.T, url, script string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, text := range strings.Split(script, ";") {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}
