package cluster_test

import (
	"cmp"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	process "github.com/observerd/observerd/test/kit/daemon"
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
	ttl        time.Duration
	attributes syscall.SysProcAttr
}

// observed are the observers of a host's nodes.
var observed = []string{
	"{id: orders, type: order, source: shop, table: orders, key: order_id, timestamp: updated_at, chunk-size: 5}",
	"{id: tasks, type: wes, source: shop, table: tasks, key: task_id, timestamp: updated_at, chunk-size: 5}",
	"{id: stock, type: inventory, source: shop, table: stock, key: sku, chunk-size: 5}",
}

// start runs a node in a working directory of its own.
func (h host) start(t *testing.T, name string, s settings) *daemon {
	t.Helper()
	return run(t, name, h.configure(t, name, s), s.attributes, "run")
}

// configure writes the configuration of a node and returns its folder.
func (h host) configure(t *testing.T, name string, s settings) string {
	t.Helper()
	folder := filepath.Join(h.folder, name)
	c := process.Config{
		Node: name, Database: cmp.Or(s.database, h.memory.url), Sources: map[string]string{"shop": cmp.Or(s.source, h.source)},
		Observers: observed, Files: map[string]string{"file": h.sink()},
		TTL: cmp.Or(s.ttl, h.memory.ttl()), Shutdown: shutdownTimeout, Disabled: s.disabled,
	}
	must(t, c.Write(folder))
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
