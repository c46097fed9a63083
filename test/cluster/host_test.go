package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// host is a machine: a folder for nodes that share the file of a sink.
type host struct {
	folder string
	source string
	memory memory
}

func newHost(t *testing.T, m memory, source string) host {
	t.Helper()
	return host{folder: t.TempDir(), source: source, memory: m}
}

// sink is the file with all events.
func (h host) sink() string { return filepath.Join(h.folder, "events.jsonl") }

// settings of one node; the zero value is what most stories want.
type settings struct {
	// database and source are URLs in the place of the host's.
	database, source string
	disabled         bool
	// ttl of the leases in the place of the shortest that is allowed.
	ttl        string
	attributes syscall.SysProcAttr
}

const nodeYAML = `
node: {name: %q}
database: {url: %q}
scheduler: {observer: {enabled: %t, fixed-delay: 1s, shutdown-timeout: %s, lock: {ttl: %s, wait: 1s}}}
sources: {shop: {url: %q}}
observers:
  - {id: orders, type: order, source: shop, table: orders, key: order_id, timestamp: updated_at, chunk-size: 5}
  - {id: tasks, type: wes, source: shop, table: tasks, key: task_id, timestamp: updated_at, chunk-size: 5}
  - {id: stock, type: inventory, source: shop, table: stock, key: sku, chunk-size: 5}
sinks: [{id: file, type: file, path: %q}]
http: {listen: "127.0.0.1:0"}
log: {level: debug, format: json}
`

// start runs a node in a working directory of its own.
func (h host) start(t *testing.T, name string, s settings) *daemon {
	t.Helper()
	return run(t, name, h.configure(t, name, s), s.attributes, "run")
}

// configure writes the configuration of a node and returns its folder.
func (h host) configure(t *testing.T, name string, s settings) string {
	t.Helper()
	if s.database == "" {
		s.database = h.memory.url
	}
	if s.source == "" {
		s.source = h.source
	}
	if s.ttl == "" {
		s.ttl = h.memory.ttl()
	}
	folder := filepath.Join(h.folder, name)
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // Users without rights look at it too.
		t.Fatal(err)
	}
	text := fmt.Appendf(nil, nodeYAML, name, s.database, !s.disabled, shutdownTimeout, s.ttl, s.source, h.sink())
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), text, 0o600); err != nil { // The URLs may have passwords.
		t.Fatal(err)
	}
	return folder
}

// command runs a one-shot command with the configuration of a node.
func (h host) command(t *testing.T, name string, args ...string) {
	t.Helper()
	d := run(t, name+" "+strings.Join(args, " "), filepath.Join(h.folder, name), syscall.SysProcAttr{}, args...)
	if code := d.ends(t, patience); code != 0 {
		t.Fatalf("%v: exit code %d", args, code)
	}
}
