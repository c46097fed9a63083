package cloudevents_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	_ "modernc.org/sqlite"
)

const configuration = `
database: {url: "sqlite:observerd.db"}
sources: {shop: {url: "sqlite:shop.db"}}
observers: [{id: shop-stock, type: inventory, source: shop, table: stock}]
sinks: [{id: lines, type: file, path: events.jsonl}]
scheduler: {observer: {fixed-delay: 1s}}
http: {listen: ""}
`

// TestSDK lets the SDK read what a node writes to a file.
func TestSDK(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	shop, err := sql.Open("sqlite", "file:"+folder+"/shop.db?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shop.Close() }()
	change := func(statement string) {
		t.Helper()
		if _, err := shop.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	change("CREATE TABLE stock (depot TEXT NOT NULL, sku INTEGER NOT NULL, quantity REAL, PRIMARY KEY (depot, sku))")
	change("INSERT INTO stock VALUES ('W/1', 4711, 12.5), ('X', 1, 1)")
	running := start(t, folder, configuration)
	running.lines(t, 2)
	change("UPDATE stock SET quantity = 11 WHERE sku = 4711")
	running.lines(t, 3)
	change("DELETE FROM stock WHERE sku = 4711")
	all := running.lines(t, 4)
	all = append(all[:1], all[2:]...) // The other row keeps the table from being empty.
	for n, want := range []struct {
		change, data string
		snapshot     any
	}{
		{"new", `{"depot":"W/1","sku":4711,"quantity":12.5}`, true},
		{"changed", `{"depot":"W/1","sku":4711,"quantity":11}`, nil},
		{"gone", `{"depot":"W/1","sku":4711}`, nil},
	} {
		var e event.Event
		if err := json.Unmarshal([]byte(all[n]), &e); err != nil {
			t.Fatalf("%v in %s", err, all[n])
		}
		if err := e.Validate(); err != nil {
			t.Errorf("%v in %s", err, all[n])
		}
		got := fmt.Sprint(e.SpecVersion(), e.Type(), e.Source(), e.Subject(), e.DataContentType(), string(e.Data()))
		if all := fmt.Sprint("1.0", "InventoryObservedEvent", "/observerd/shop-stock", "W%2F1/4711", "application/json", want.data); got != all {
			t.Errorf("event %d is %s, want %s", n, got, all)
		}
		extensions := e.Extensions()
		_, err := time.Parse(time.RFC3339, fmt.Sprint(extensions["observedtime"]))
		if err != nil || e.Time().IsZero() || e.ID() == "" {
			t.Errorf("event %d has the times %v, %v: %v", n, e.Time(), extensions["observedtime"], err)
		}
		delete(extensions, "observedtime")
		expected := map[string]any{"change": want.change, "rowversion": int32(n + 1), "sequence": fmt.Sprintf("%020d", []int{1, 3, 4}[n])} //nolint:gosec // It is 1 to 3.
		if want.snapshot != nil {
			expected["snapshot"] = want.snapshot
		}
		if fmt.Sprintf("%#v", extensions) != fmt.Sprintf("%#v", expected) {
			t.Errorf("event %d has the extensions %#v, want %#v", n, extensions, expected)
		}
	}
}
