package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/admin/sample"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// patience is how long a test waits for what must happen.
const patience = 3 * time.Minute

const yaml = `
node: {name: test-node}
database: {url: %q}
scheduler: {observer: {fixed-delay: 1s, shutdown-timeout: 5s, lock: {ttl: 15s}}}
sources: {warehouse: {url: "sqlite:%[2]s/warehouse.db"}}
observers:
  - {id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at, overlap: 1m}
  - {id: stock, type: inventory, source: warehouse, table: inventory, key: [warehouse, sku]}
  - {id: tasks, type: wes, source: warehouse, table: wes_tasks, key: task_id, timestamp: updated_at, overlap: 1m}
sinks: [{id: file, type: file, path: "%[2]s/events.jsonl"}]
http: {listen: "127.0.0.1:0"}
`

// place is a folder with a sample warehouse and a configuration for it.
type place struct {
	folder    string
	config    *config.Config
	warehouse *sample.Warehouse
}

// onBoth runs a test with the coordination database on SQLite and PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, p place)) {
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return pgtest.New(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t, url(t)))
		})
	}
}

// setup makes a place. An empty url is an SQLite file there.
func setup(t *testing.T, url string) place {
	t.Helper()
	p := place{folder: t.TempDir()}
	if url == "" {
		url = "sqlite:" + p.folder + "/observerd.db"
	}
	path := filepath.Join(p.folder, "config.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, yaml, url, p.folder), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.config, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}}); err != nil {
		t.Fatal(err)
	}
	p.warehouse, err = sample.Open(t.Context(), filepath.Join(p.folder, "warehouse.db"), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.warehouse.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// feeding is the place with other sinks.
func (p place) feeding(t *testing.T, sinks string) place {
	t.Helper()
	path := filepath.Join(p.folder, "sinks.yaml")
	text := strings.Replace(yaml, `{id: file, type: file, path: "%[2]s/events.jsonl"}`, sinks, 1)
	if err := os.WriteFile(path, fmt.Appendf(nil, text, "sqlite:"+p.folder+"/observerd.db", p.folder), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.config, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) options() app.Options {
	return app.Options{Config: p.config, Version: "test", Logger: slog.New(slog.DiscardHandler), Stdout: io.Discard}
}

// start runs a node until the test ends.
func (p place) start(t *testing.T) *app.App {
	t.Helper()
	return launch(t, p.options())
}

// startLogged is start for a node whose log, one of JSON, the test reads.
func (p place) startLogged(t *testing.T) (*app.App, *logbook) {
	t.Helper()
	log, o := new(logbook), p.options()
	o.Logger = slog.New(slog.NewJSONHandler(log, nil))
	return launch(t, o), log
}

func launch(t *testing.T, o app.Options) *app.App {
	t.Helper()
	node, err := app.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	node.Start()
	t.Cleanup(func() { stop(t, node) })
	return node
}

func stop(t *testing.T, node *app.App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := node.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// operator acts on the cluster.
func (p place) operator(t *testing.T) *admin.Operator {
	t.Helper()
	op, err := admin.NewOperator(admin.OperatorOptions{Config: p.config, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := op.Close(); err != nil {
			t.Error(err)
		}
	})
	return op
}

// eventually asks again until there is no complaint.
func eventually(t *testing.T, complaint func() error) {
	t.Helper()
	waittest.Eventually(t, patience, complaint)
}

// get returns the status and text of a page of the node.
func get(t *testing.T, node *app.App, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+node.Addr()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // A kept connection would outlive the test.
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// ready waits until the node can do its work.
func ready(t *testing.T, node *app.App) {
	t.Helper()
	eventually(t, func() error {
		if code, text := get(t, node, "/readyz"); code != http.StatusOK {
			return fmt.Errorf("readyz: %d %s", code, text)
		}
		return nil
	})
}

// stored returns the events of the file sink by stream, and fails on one that
// is there twice or out of order.
func (p place) stored(t *testing.T) map[string][]events.Event {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.folder, "events.jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	streams := make(map[string][]events.Event)
	seen := make(map[string]bool)
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // It is being written.
		}
		e, err := events.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		if seen[e.ID.String()] {
			t.Fatalf("event %s is stored twice", e.ID)
		}
		if want := int64(len(streams[e.Stream]) + 1); e.Seq != want {
			t.Fatalf("stream %s has sequence %d where %d belongs", e.Stream, e.Seq, want)
		}
		seen[e.ID.String()] = true
		streams[e.Stream] = append(streams[e.Stream], e)
	}
	return streams
}

// delivered complains until the sink has every event of the log, and at least
// so many of the stream.
func (p place) delivered(t *testing.T, op *admin.Operator, stream string, least int) func() error {
	return func() error {
		streams := p.stored(t)
		if got := len(streams[stream]); got < least {
			return fmt.Errorf("%d events of %s are stored, want %d", got, stream, least)
		}
		report, err := op.Report(t.Context())
		if err != nil {
			return err
		}
		for _, o := range report.Observers {
			if got := int64(len(streams[o.ID])); got < o.Events {
				return fmt.Errorf("%d of %d events of %s are stored", got, o.Events, o.ID)
			}
		}
		return nil
	}
}

// page complains when a page of the node lacks one of the parts.
func page(t *testing.T, node *app.App, path string, parts ...string) error {
	t.Helper()
	code, text := get(t, node, path)
	if code != http.StatusOK {
		return fmt.Errorf("%s: %d %s", path, code, text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("%s lacks %q:\n%s", path, part, text)
		}
	}
	return nil
}
