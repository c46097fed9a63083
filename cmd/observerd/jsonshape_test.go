package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/status"
)

func TestShapeOfJSON(t *testing.T) {
	t.Parallel()
	type inner struct {
		N int `json:"n"`
	}
	type outer struct {
		inner
		At      time.Time         `json:"at"`
		Never   time.Time         `json:"never"`
		Left    time.Time         `json:"left,omitzero"`
		Took    time.Duration     `json:"took_ms"`
		None    []string          `json:"none"`
		Out     []string          `json:"out,omitempty"`
		Raw     json.RawMessage   `json:"raw"`
		Of      *inner            `json:"of"`
		Nobody  *inner            `json:"nobody"`
		Texts   map[string]string `json:"texts"`
		Any     any               `json:"any"`
		private int
		Hidden  error `json:"-"`
	}
	value := outer{
		inner: inner{1}, At: time.Date(2026, 1, 2, 3, 4, 5, 120_900_000, time.FixedZone("", 3600)), Took: 1500 * time.Microsecond,
		Raw: json.RawMessage(`{"b": 1, "a": 2}`), Of: &inner{2}, Texts: map[string]string{"<": "&"}, Any: []time.Duration{2 * time.Second}, private: 3,
	}
	var text strings.Builder
	must(t, printJSON(&text, value))
	var compact strings.Builder
	for line := range strings.Lines(text.String()) {
		compact.WriteString(strings.TrimSpace(line))
	}
	const want = `{"n": 1,"at": "2026-01-02T02:04:05.120Z","never": null,"took_ms": 1,"none": [],"raw": {"b": 1,"a": 2},` +
		`"of": {"n": 2},"nobody": null,"texts": {"<": "&"},"any": [2000]}`
	if compact.String() != want {
		t.Errorf("\n%s, want\n%s", compact.String(), want)
	}
}

// TestDurationsOfJSONHaveAUnit wants the unit in the name of each duration that commands
// print.
func TestDurationsOfJSONHaveAUnit(t *testing.T) {
	t.Parallel()
	found, seen := 0, map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
		case reflect.Struct:
			if seen[typ] || typ == reflect.TypeFor[time.Time]() {
				return
			}
			seen[typ] = true
			for _, field := range reflect.VisibleFields(typ) {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if field.Type == reflect.TypeFor[time.Duration]() {
					if found++; !strings.HasSuffix(name, "_ms") {
						t.Errorf("%s.%s is %q", typ, field.Name, name)
					}
				}
				walk(field.Type)
			}
		}
	}
	for _, value := range []any{status.Report{}, status.ObserverDetails{}, admin.Polled{}, admin.Backfill{}, status.HeldLock{}, stolenLock{}} {
		walk(reflect.TypeOf(value))
	}
	if found < 12 {
		t.Errorf("only %d durations were found", found)
	}
}
