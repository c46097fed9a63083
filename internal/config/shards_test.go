package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
)

// shardsOf returns the shard of each observer, of a type that has n.
func shardsOf(t *testing.T, n int, ids []string) (map[string]string, *config.Config) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "scheduler: {order-observer: {shards: %d}}\nsources: {erp: {url: \"sqlite:var/erp.db\"}}\nsinks: [{id: screen, type: stdout}]\nobservers:\n", n)
	for _, id := range ids {
		fmt.Fprintf(&text, "  - {id: %s, type: order, source: erp, table: orders, key: id, timestamp: at}\n", id)
	}
	cfg, found := load(t, text.String()), make(map[string]string)
	for _, typ := range cfg.Types() {
		if want := strings.Replace(typ.Name, "order", "order-observer-poll", 1); typ.LockName != want {
			t.Errorf("%s has the lock %s, want %s", typ.Name, typ.LockName, want)
		}
		for _, o := range typ.Observers {
			if before, twice := found[o.ID]; twice || typ.Name != cfg.ShardOf(o) {
				t.Errorf("%s is in %s, before in %q, by itself in %s", o.ID, typ.Name, before, cfg.ShardOf(o))
			}
			found[o.ID] = typ.Name
		}
	}
	return found, cfg
}

func TestShards(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 500 {
		ids = append(ids, fmt.Sprintf("orders-%04d", i))
	}
	found, cfg := shardsOf(t, 10, ids)
	sizes := make(map[string]int)
	for _, name := range found {
		sizes[name]++
	}
	if len(found) != len(ids) || len(sizes) != 10 || len(cfg.Types()) != 10 {
		t.Fatalf("%d observers in %v", len(found), sizes)
	}
	for name, n := range sizes {
		if n < 35 || n > 65 || config.OfShard(name) != "order" {
			t.Errorf("%s has %d of 500 observers", name, n)
		}
	}
	fewer, _ := shardsOf(t, 10, ids[100:])
	for id, name := range fewer {
		if found[id] != name {
			t.Errorf("%s moves from %s to %s when others go", id, found[id], name)
		}
	}
	// Nodes of different versions have to agree.
	for id, want := range map[string]string{"orders-0000": "order#10", "orders-0001": "order#1", "orders-0002": "order#8"} {
		if found[id] != want {
			t.Errorf("%s is in %s, want %s", id, found[id], want)
		}
	}
	whole, _ := shardsOf(t, 1, ids[:3])
	if whole[ids[0]] != "order" || whole[ids[2]] != "order" {
		t.Errorf("one shard is %v", whole)
	}
}
