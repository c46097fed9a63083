package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

const unchanged = `
node: {name: a}
database: {url: "postgres://app:first-secret@db/observerd"}
scheduler: {observer: {fixed-delay: 30s}}
sources: {erp: {url: "sqlite:erp.db"}}
observers:
  - {id: orders, type: order, source: erp, table: orders, key: id, timestamp: at, overlap: 1m}
sinks: [{id: file, type: file, path: events.jsonl}]
`

func TestChangedNamesKeysAndNoValues(t *testing.T) {
	t.Parallel()
	before := loaded(t, unchanged)
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"nothing":           {"", "", nil},
		"a comment":         {"node:", "# new\nnode:", nil},
		"a scalar":          {"overlap: 1m", "overlap: 2m", []string{"observers.orders.overlap"}},
		"a key that is new": {"{name: a}", "{name: a}\nhttp: {listen: \"127.0.0.1:1\"}", []string{"http.listen"}},
		"a password alone":  {"first-secret", "other-secret", []string{"database.url"}},
		"a source more":     {"{erp:", "{wms: {url: \"sqlite:wms.db\"}, erp:", []string{"sources.wms"}},
		"an observer less":  {"observers:\n  - {id: orders, type: order, source: erp, table: orders, key: id, timestamp: at, overlap: 1m}", "observers: []", []string{"observers.orders"}},
		"a sink with another name": {
			"{id: file,", "{id: other,", []string{"sinks.file", "sinks.other"},
		},
		"two keys": {"name: a}", "name: b}\nlog: {level: debug}", []string{"log.level", "node.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := config.Changed(before, loaded(t, strings.Replace(unchanged, c.old, c.new, 1)))
			if !slices.Equal(got, c.want) {
				t.Errorf("changed %q, want %q", got, c.want)
			}
			if strings.Contains(strings.Join(got, " "), "secret") {
				t.Errorf("a value is part of %q", got)
			}
		})
	}
}

// TestChangedHashKey changes the content of a file alone, which the hash of the
// configuration does not tell.
func TestChangedHashKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	with := func(secret string) *config.Config {
		t.Helper()
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return loaded(t, strings.Replace(unchanged, "overlap: 1m", "redact: {mail: hash, a.b: drop}, redact-key-file: '"+file+"'", 1))
	}
	first, second := strings.Repeat("a", 32), strings.Repeat("b", 32)
	before, after := with(first), with(second)
	if got := config.Changed(before, after); !slices.Equal(got, []string{"observers.orders.redact-key-file.content"}) || config.Changed(before, with(first)) != nil {
		t.Errorf("changed %q", got)
	}
	if before.Hash() != after.Hash() {
		t.Error("the hash tells keys apart")
	}
	o := after.Observers[0]
	if o.HashKey().Reveal() != second || !maps.Equal(o.Redact, config.Redactions{"mail": "hash", "a.b": "drop"}) {
		t.Errorf("observer %+v", o)
	}
}

// A key that is left out may have any column, so one that is hashed need not be chosen.
func TestHashOfAColumnOfThePrimaryKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(strings.Repeat("a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := loaded(t, strings.Replace(minimal, "key: order_id,", "columns: [state], redact: {order_id: hash}, redact-key-file: '"+file+"',", 1))
	if o := cfg.Observers[0]; len(o.Key) > 0 || o.Redact["order_id"] != config.RedactHash {
		t.Errorf("observer %+v", o)
	}
}

func TestChangedOfATypeIsThatOfTheType(t *testing.T) {
	t.Parallel()
	before := loaded(t, unchanged)
	after := loaded(t, strings.Replace(unchanged, "{observer: {fixed-delay: 30s}}", "{observer: {fixed-delay: 30s}, order-observer: {fixed-delay: 10s}}", 1))
	if got := config.Changed(before, after); !slices.Equal(got, []string{"scheduler.order-observer.fixed-delay"}) {
		t.Errorf("changed %q", got)
	}
}

func loaded(t *testing.T, text string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
