package cluster_test

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	process "github.com/observerd/observerd/test/kit/daemon"
)

// shutdownTimeout is that of the configuration of a [host]'s nodes.
const shutdownTimeout = 8 * time.Second

// host is a machine: a folder for nodes that share the file of a sink.
type host struct {
	folder string
	source string
	memory memory
	// owner is what the names of tables begin with, and access are more settings of
	// the source, as the configuration has them.
	owner, access string
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
	// ttl of the leases in the place of the shortest that is allowed.
	ttl        time.Duration
	attributes syscall.SysProcAttr
}

// observed are the observers of a host's nodes, of tables whose names begin with that.
func observed(prefix string) []string {
	return []string{
		"{id: orders, type: order, source: shop, table: " + prefix + "orders, key: order_id, timestamp: updated_at, chunk-size: 5}",
		"{id: tasks, type: wes, source: shop, table: " + prefix + "tasks, key: task_id, timestamp: updated_at, chunk-size: 5}",
		"{id: stock, type: inventory, source: shop, table: " + prefix + "stock, key: sku, chunk-size: 5}",
	}
}

// start runs a node in a working directory of its own.
func (h host) start(t *testing.T, name string, s settings) *daemon {
	t.Helper()
	return run(t, name, h.configure(t, name, s), s.attributes, "run")
}

// configure writes the configuration of a node and returns its folder.
func (h host) configure(t *testing.T, name string, s settings) string {
	t.Helper()
	return h.write(t, process.Config{
		Node: name, Database: s.database, Sources: map[string]string{"shop": cmp.Or(s.source, h.source)}, Access: h.access,
		Observers: observed(h.owner), TTL: cmp.Or(s.ttl, h.memory.ttl()), Shutdown: shutdownTimeout,
	})
}

// write writes a configuration whose nodes share the host's sink and, unless it names
// another, the host's coordination database. It returns the node's folder.
func (h host) write(t *testing.T, c process.Config) string {
	t.Helper()
	c.Database, c.Files = cmp.Or(c.Database, h.memory.url), map[string]string{"file": h.sink()}
	folder := filepath.Join(h.folder, c.Node)
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

// status returns what `observerd status` says with the configuration of a node.
func (h host) status(t *testing.T, name string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	err := process.Run(ctx, process.Options{
		Binary: os.Getenv(envBinary), Name: "status", Folder: filepath.Join(h.folder, name), Args: []string{"status"}, Stdout: &out,
		LogFile: filepath.Join(t.TempDir(), "log"),
	})
	return out.String(), err
}
