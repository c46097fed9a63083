package config_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

const minimal = `
sources:
  warehouse: {url: "sqlite:var/warehouse.db"}
observers:
  - {id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}
sinks:
  - {id: screen, type: stdout}
`

// write puts a configuration into a file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load loads what must be without mistakes and warnings.
func load(t *testing.T, text string, options ...func(*config.Options)) *config.Config {
	t.Helper()
	o := config.Options{Kinds: wiring.Kinds(), Paths: []string{write(t, text)}}
	for _, set := range options {
		set(&o)
	}
	cfg, warnings, err := config.Load(o)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("load: %v, warnings %v", err, warnings)
	}
	return cfg
}

// refuse loads what must have mistakes, and returns them without the path.
func refuse(t *testing.T, text string, options ...func(*config.Options)) string {
	t.Helper()
	o := config.Options{Kinds: wiring.Kinds(), Paths: []string{write(t, text)}}
	for _, set := range options {
		set(&o)
	}
	_, _, err := config.Load(o)
	var mistakes *config.Error
	if !errors.As(err, &mistakes) {
		t.Fatalf("loaded, or failed with another error: %v", err)
	}
	return strings.ReplaceAll(err.Error(), o.Paths[0], "config.yaml")
}

func environ(variables ...string) func(*config.Options) {
	return func(o *config.Options) { o.Environ = variables }
}

func TestShippedConfig(t *testing.T) {
	t.Parallel()
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{"../../config.yaml"}})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("load: %v, warnings %v", err, warnings)
	}
	var got []string
	for _, ty := range cfg.Types() {
		o := ty.Observers[0]
		got = append(got, strings.Join([]string{ty.LockName, o.ID, o.Event, o.Detect}, " "))
	}
	want := []string{
		"inventory-observer-poll warehouse-stock InventoryObservedEvent snapshot",
		"order-observer-poll warehouse-orders NewOrderObservedEvent new",
		"wes-observer-poll warehouse-tasks WesTaskPolledEvent change",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("types\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := cfg.Database.URL.Path(); got != "var/observerd.db" {
		t.Errorf("database %s", got)
	}
	if len(cfg.Sinks) != 2 || cfg.Sinks[1].Written()["path"] != "var/events.jsonl" {
		t.Errorf("sinks %+v", cfg.Sinks)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	cfg := load(t, minimal)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Node.Name != host {
		t.Errorf("node.name %q, want the host's name %q", cfg.Node.Name, host)
	}
	ty := cfg.Types()[0]
	if ty.Interval != 30*time.Second || ty.TTL != time.Minute || ty.Wait != time.Second ||
		ty.Region != "DEFAULT" || ty.KeyFormat != "plain" || !ty.Enabled || !cfg.Scheduler.Enabled {
		t.Errorf("type %+v", ty)
	}
	o := cfg.Observers[0]
	if o.ChunkSize != 5000 || o.Overlap != nil || o.MaxGone != 20 || !o.Enabled || o.MaxRowBytes != 1<<20 {
		t.Errorf("observer %+v", o)
	}
	if o.Start != config.StartBeginning || o.MaxChanged != 100_000 || o.MaxRate != 0 || o.ReconcileAt != "" || o.ReconcileWindow != 0 {
		t.Errorf("observer %+v", o)
	}
	if s := cfg.Sources["warehouse"]; s.FetchSize != 1000 || s.QueryTimeout != time.Minute {
		t.Errorf("source: fetch size %d, query timeout %v", s.FetchSize, s.QueryTimeout)
	}
	if cfg.Sources["warehouse"].Location() != time.UTC {
		t.Errorf("location %v", cfg.Sources["warehouse"].Location())
	}
}

// TestDefaultsOfATypeOfYourOwn has events by the name of the type, and the detection that
// the timestamp allows.
func TestDefaultsOfATypeOfYourOwn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		typ           string
		timed         bool
		event, detect string
	}{
		{"stock-count", true, "StockCountObservedEvent", config.DetectChange},
		{"stock-count", false, "StockCountObservedEvent", config.DetectSnapshot},
		{"order", true, "NewOrderObservedEvent", config.DetectNew},
		{"order", false, "NewOrderObservedEvent", config.DetectNew},
		{"inventory", true, "InventoryObservedEvent", config.DetectSnapshot},
		{"wes", true, "WesTaskPolledEvent", config.DetectChange},
		{"wes", false, "WesTaskPolledEvent", config.DetectSnapshot},
	} {
		observer := "{id: a, type: " + test.typ + ", source: warehouse, table: t}"
		if test.timed {
			observer = strings.Replace(observer, "}", ", timestamp: at}", 1)
		}
		cfg := load(t, "sources: {warehouse: {url: \"sqlite:w.db\"}}\nobservers: ["+observer+"]\nsinks: [{id: s, type: stdout}]\n")
		if o := cfg.Observers[0]; o.Event != test.event || o.Detect != test.detect || len(o.Key) > 0 {
			t.Errorf("%s: event %s, detect %s, key %q", observer, o.Event, o.Detect, o.Key)
		}
	}
	if event, _ := config.Defaults("orders", true); event != "" {
		t.Errorf("a type that looks like another has the event %s", event)
	}
}

func TestNoFile(t *testing.T) {
	t.Parallel()
	cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Environ: []string{"OBSERVERD_LOG_LEVEL=debug"}})
	if err != nil || cfg.Log.Level != slog.LevelDebug {
		t.Fatalf("load: %v", err)
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0].String(), "there are no observers") {
		t.Errorf("warnings %v", warnings)
	}
}

func TestTypesInheritAndOverride(t *testing.T) {
	t.Parallel()
	cfg := load(t, `
scheduler:
  observer: {enabled: false, fixed-delay: 10000, lock: {ttl: 20s, region: R, key-format: spring}}
  returns-observer: {fixed-delay: 15s, lock: {ttl: 40000}}
  wes-observer: {enabled: false}
sources: {w: {url: "sqlite:w.db"}}
observers:
  - {id: r2, type: returns, source: w, table: r, key: k, timestamp: u, event: ReturnObservedEvent}
  - {id: off, type: returns, source: w, table: r, key: k, timestamp: u, event: ReturnObservedEvent, enabled: false}
  - {id: r1, type: returns, source: w, table: r, key: k, timestamp: u, event: ReturnObservedEvent, overlap: 0}
  - {id: tasks, type: wes, source: w, table: t, key: k, timestamp: u}
  - {id: stock, type: inventory, source: w, table: s, key: [a, b], enabled: false}
sinks: [{id: s, type: stdout}]
`)
	types := cfg.Types()
	if len(types) != 2 || types[0].Name != "returns" || types[1].Name != "wes" {
		t.Fatalf("types %+v", types)
	}
	r := types[0]
	if !r.Enabled || r.Interval != 15*time.Second || r.TTL != 40*time.Second || r.Wait != time.Second ||
		r.Region != "R" || r.KeyFormat != "spring" || r.LockName != "returns-observer-poll" {
		t.Errorf("returns %+v", r)
	}
	if len(r.Observers) != 2 || r.Observers[0].ID != "r2" || r.Observers[1].ID != "r1" || r.Observers[0].Detect != "change" {
		t.Errorf("observers of returns %+v", r.Observers)
	}
	if overlap := r.Observers[1].Overlap; overlap == nil || *overlap != 0 {
		t.Errorf("an overlap of 0 was not told from one that is not set: %v", overlap)
	}
	if w := types[1]; w.Enabled || w.Interval != 10*time.Second || w.TTL != 20*time.Second {
		t.Errorf("wes %+v", w)
	}
	if cfg.Scheduler.Enabled || len(cfg.Observers) != 5 {
		t.Errorf("scheduler enabled %v, %d observers", cfg.Scheduler.Enabled, len(cfg.Observers))
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir:                             dir + ": no file in this folder has a name that ends in .yaml; add one, or name the right folder",
		filepath.Join(dir, "none.yaml"): filepath.Join(dir, "none.yaml") + ": the file does not exist; create one with 'observerd init URL', or name another file",
		"/dev/zero":                     "/dev/zero: the file is larger than 1 MiB; name the right file",
	} {
		if _, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestNewWithoutTimestampReadsEverything(t *testing.T) {
	t.Parallel()
	cfg := load(t, strings.Replace(minimal, ", timestamp: updated_at", "", 1))
	if o := cfg.Observers[0]; o.Detect != config.DetectNew || o.Timestamp != "" {
		t.Errorf("observer %+v", o)
	}
}
