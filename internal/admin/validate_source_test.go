package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

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
}

// TestValidateOfKeys has a key from which no read goes on, and one with the timestamp in it.
func TestValidateOfKeys(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	run(t, url, `CREATE TABLE named (k REGCLASS PRIMARY KEY, id INTEGER NOT NULL, at TIMESTAMPTZ NOT NULL)`)
	cfg := load(t, fmt.Appendf(nil, `
database: {url: %q}
sources: {erp: {url: %q}}
observers:
  - {id: a, type: order, source: erp, table: named, key: k}
  - {id: b, type: order, source: erp, table: named, key: k, timestamp: at}
  - {id: c, type: order, source: erp, table: named, key: [id, at], timestamp: at}
sinks: [{id: screen, type: stdout}]
`, lockdbtest.SQLite(t), url))
	report := admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute})
	for _, want := range []string{
		"no read can continue from a key with column k of type regclass, so one statement reads all of public.named",
		"no read can continue from a key with column k of type regclass, so the rows of public.named that share a timestamp have to fit into one poll",
		"an index on (at, id) would help",
	} {
		if text := fmt.Sprintf("%+v", report.Findings); !strings.Contains(text, want) {
			t.Errorf("findings %s, want %q", text, want)
		}
	}
}

// TestHistoryOnAServer has rows of before and after the start of an observer, and
// business dates.
func TestHistoryOnAServer(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	run(t, url, `CREATE TABLE orders (id INTEGER PRIMARY KEY, at TIMESTAMPTZ);
		INSERT INTO orders VALUES (1, '1996-07-04'), (2, '1998-05-06 12:00Z'), (3, NULL), (4, now());
		CREATE TABLE invoices (id INTEGER PRIMARY KEY, at TIMESTAMP, day DATE);
		INSERT INTO invoices SELECT id, at - INTERVAL '31 days', at FROM orders`)
	cfg := load(t, fmt.Appendf(nil, `
database: {url: %q}
sources: {erp: {url: %q}}
observers:
  - {id: all, type: order, source: erp, table: orders, key: id}
  - {id: beginning, type: order, source: erp, table: orders, key: id, timestamp: at}
  - {id: dated, type: order, source: erp, query: "SELECT * FROM orders", key: id, timestamp: at, null-timestamp: skip}
  - {id: since, type: order, source: erp, table: orders, key: id, timestamp: at, null-timestamp: error, start: "1998-05-06T00:00:00Z"}
  - {id: now, type: order, source: erp, table: orders, key: id, timestamp: at, start: now}
  - {id: lags, type: order, source: erp, table: invoices, key: id, timestamp: at, start: now}
  - {id: day, type: order, source: erp, table: invoices, key: id, timestamp: day, start: now}
sinks: [{id: screen, type: stdout}]
`, lockdbtest.SQLite(t), url))
	v := admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute, Sample: 1})
	got := map[string]int{}
	for _, o := range v.Observers {
		if o.History != nil {
			got[o.ID] = o.History.Rows
		}
	}
	if want := map[string]int{"all": 4, "beginning": 4, "dated": 3, "since": 2}; v.Err() != nil || !maps.Equal(got, want) {
		t.Errorf("rows of history %v, want %v; %v", got, want, v.Err())
	}
	warned := map[string]string{}
	for _, f := range v.Findings {
		if strings.Contains(f.Text, "reconcile-at") {
			warned[f.Subject] = f.Text
		}
	}
	if !strings.Contains(warned["observer lags"], "more than 30 days behind") || !strings.Contains(warned["observer day"], "without a time of day") || len(warned) != 2 {
		t.Errorf("warnings of business dates: %q", warned)
	}
}

const primaryKeyYAML = `
database: {url: %q}
sources: {erp: {url: %q}}
observers: [{id: a, type: order, source: erp, table: orders}]
sinks: [{id: screen, type: stdout}]
`

// TestValidateComparesThePrimaryKey has a table whose primary key becomes another: validate
// says what the next poll does, before and after there are rows of the stream.
func TestValidateComparesThePrimaryKey(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	run(t, url, `CREATE TABLE orders (id INTEGER PRIMARY KEY, region TEXT NOT NULL); INSERT INTO orders VALUES (1, 'n'), (2, 's')`)
	cfg := load(t, fmt.Appendf(nil, primaryKeyYAML, lockdbtest.SQLite(t), url))
	validate := func() error {
		return admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute}).Err()
	}
	const remove, add = "ALTER TABLE orders DROP CONSTRAINT orders_pkey", "; ALTER TABLE orders ADD PRIMARY KEY (%s)"
	run(t, url, remove+fmt.Sprintf(add, "region, id"))
	if err := validate(); err != nil {
		t.Fatalf("before there is a stream: %v", err)
	}
	if err := pollOnce(t, cfg, "a"); err != nil {
		t.Fatal(err)
	}
	if err := validate(); err != nil {
		t.Fatalf("after a poll by this key: %v", err)
	}
	for _, script := range []string{remove + fmt.Sprintf(add, "id"), remove} {
		run(t, url, script)
		polled, said := pollOnce(t, cfg, "a"), validate()
		if polled == nil || said == nil || !strings.Contains(said.Error(), "use `key: [region, id]`") || !strings.Contains(said.Error(), polled.Error()) {
			t.Errorf("%s: a poll says %v, validate %v", script, polled, said)
		}
	}
}

func load(t *testing.T, yaml []byte) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, yaml, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
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

// TestValidateRedacted shows the samples of observers with redacted columns, and what a
// hashed key costs. A column that is not there is told the nearest.
func TestValidateRedacted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "key"), []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	url := pgtest.New(t)
	run(t, url, `CREATE TABLE people (id INTEGER PRIMARY KEY, email TEXT NOT NULL, at TIMESTAMPTZ NOT NULL); INSERT INTO people VALUES (86753091, 'c4n4ry', now())`)
	cfg := load(t, fmt.Appendf(nil, `
database: {url: %q}
sources: {erp: {url: %q}}
observers:
  - {id: a, type: order, source: erp, table: people, key: id, timestamp: at, redact: {id: hash, email: mask}, redact-key-file: %[3]q}
  - {id: b, type: inventory, source: erp, table: people, key: id, redact: {id: hash, email: hash}, redact-key-file: %[3]q}
  - {id: c, type: order, source: erp, table: people, key: id, timestamp: at, redact: {emial: drop}}
sinks: [{id: screen, type: stdout}]
`, lockdbtest.SQLite(t), url, filepath.Join(folder, "key")))
	report := admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute, Sample: 3})
	text := fmt.Sprintf("%+v", report.Findings)
	for _, want := range []string{
		"a key that is hashed, so the rows of public.people that share a timestamp have to fit into one poll",
		"a key that is hashed, so one statement reads all of public.people",
		`column "emial" does not exist in public.people; is it "email"?`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("findings %s, want %q", text, want)
		}
	}
	sampled := 0
	for _, o := range report.Observers {
		for _, e := range o.Sample {
			sampled++
			text += string(e)
		}
	}
	if sampled != 2 || strings.Contains(text, "c4n4ry") || strings.Contains(text, "86753091") || !strings.Contains(text, `"subject":"hmac-sha256:`) {
		t.Errorf("%d events: %s", sampled, text)
	}
}
