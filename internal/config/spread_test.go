package config_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
)

const manyTypes = `
sources:
  warehouse: {url: "sqlite:var/warehouse.db"}
observers:
  - {id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}
  - {id: stock, type: inventory, source: warehouse, table: inventory, key: sku}
  - {id: tasks, type: wes, source: warehouse, table: wes_tasks, key: task_id, timestamp: updated_at}
  - {id: parcels, type: parcel, event: ParcelSeen, source: warehouse, table: parcels, key: id, timestamp: updated_at, detect: new}
sinks:
  - {id: screen, type: stdout}
`

// shifts returns the shift of each type.
func shifts(cfg *config.Config) map[string]time.Duration {
	found := make(map[string]time.Duration)
	for _, typ := range cfg.Types() {
		found[typ.Name] = typ.Shift
	}
	return found
}

func TestSpreadLaysTypesOfOneIntervalApart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scheduler string
		want      map[string]time.Duration
	}{
		"off by default": {"{}", map[string]time.Duration{"inventory": 0, "order": 0, "parcel": 0, "wes": 0}},
		"evenly, by name": {
			"{observer: {spread: 10s}}",
			map[string]time.Duration{"inventory": 0, "order": 2500 * time.Millisecond, "parcel": 5 * time.Second, "wes": 7500 * time.Millisecond},
		},
		"by interval, in whole milliseconds": {
			"{observer: {spread: 10s}, order-observer: {fixed-delay: 1m}}",
			map[string]time.Duration{"inventory": 0, "order": 0, "parcel": 3333 * time.Millisecond, "wes": 6666 * time.Millisecond},
		},
		"a type that is switched off here keeps its place": {
			"{observer: {spread: 10s}, inventory-observer: {enabled: false}}",
			map[string]time.Duration{"inventory": 0, "order": 2500 * time.Millisecond, "parcel": 5 * time.Second, "wes": 7500 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := shifts(load(t, "scheduler: "+tc.scheduler+manyTypes))
			for typ, want := range tc.want {
				if got[typ] != want {
					t.Errorf("%s is due after %s, want %s", typ, got[typ], want)
				}
			}
		})
	}
}

func TestSpreadMayBeHalfOfTheInterval(t *testing.T) {
	t.Parallel()
	load(t, "scheduler: {observer: {spread: 15s}}"+minimal)
	refuse(t, "scheduler: {observer: {spread: 15001}}"+minimal)
}
