package compose_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/observerd/observerd/test/kit/kafkatest"
)

// TestKafkaIsFilled runs the node of the profile beside the warehouse, with a broker that is
// emulated, and reads what the documented command reads.
func TestKafkaIsFilled(t *testing.T) {
	t.Parallel()
	p := openPlayground(t)
	node := load(t, []string{"kafka"}).Services["node-kafka"]
	environ, config := environment(t, node), mounted(t, node, configPath)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	must(t, err)
	t.Cleanup(broker.Close)
	text, err := os.ReadFile(config)
	must(t, err)
	here := strings.ReplaceAll(string(text), `["kafka:9092"]`, `["`+broker.ListenAddrs()[0]+`"]`)
	if here == string(text) {
		t.Fatal("the configuration names another broker than kafka:9092")
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(file, []byte(here), 0o600))

	crew := newCrew(t)
	crew.join(t, "node-kafka", file, append(environ, "OBSERVERD_SOURCES_WAREHOUSE_URL="+p.here(t, parsed(t, config).Sources["warehouse"].URL, environ)))
	p.traffic(t)
	for topic, want := range map[string]int{"warehouse.orders": 3 + 2, "warehouse.stock": 3 + 2, "warehouse.tasks": 2 + 4} {
		eventually(t, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			records, err := kafkatest.Consume(ctx, broker.ListenAddrs(), topic)
			if err != nil {
				return err
			}
			for _, r := range records {
				if len(r.Key) == 0 || !json.Valid(r.Value) {
					t.Errorf("a record of %s has the key %q and the value %q", topic, r.Key, r.Value)
				}
			}
			return failedIf(len(records) < want, "%s has %d records, want %d", topic, len(records), want)
		})
	}
	crew.stop(t)
	if found := strings.Join(environment(t, load(t, []string{"kafka"}).Services["kafka"]), "\n"); !strings.Contains(found, "=PLAINTEXT://kafka:9092\n") {
		t.Errorf("the broker does not advertise kafka:9092:\n%s", found)
	}
}
