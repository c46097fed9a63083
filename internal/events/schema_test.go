package events_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/internal/events"
)

var writeSchemas = flag.Bool("write-schemas", false, "write docs/schemas anew")

// TestSchemasOfStandardEvents compares docs/schemas with the contract of events.
func TestSchemasOfStandardEvents(t *testing.T) {
	t.Parallel()
	for _, name := range []string{events.TypeNewOrder, events.TypeInventory, events.TypeWesTask} {
		want, err := events.Contract{Type: name}.Schema()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		path := filepath.Join("..", "..", "docs", "schemas", name+".json")
		if *writeSchemas {
			if err := os.WriteFile(path, want, 0o644); err != nil { //nolint:gosec // It is a page for everybody.
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run 'make generate'; %v", path, err)
		}
	}
}
