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
	"github.com/observerd/observerd/test/kit/testbed"
)

// shutdownTimeout is that of the configuration of a [host]'s nodes.
const shutdownTimeout = 8 * time.Second

// host is a machine: a folder for nodes that share the file of a sink.
type host struct {
	testbed.Testbed
	source string
	memory memory
	// owner is what the names of tables begin with, and access are more settings of
	// the source, as the configuration has them.
	owner, access string
}

func newHost(t *testing.T, m memory, source string) host {
	t.Helper()
	return hostIn(t.TempDir(), m, source)
}

func hostIn(folder string, m memory, source string) host {
	bed := testbed.Testbed{Options: testbed.Options{Binary: os.Getenv(envBinary), Folder: folder}}
	return host{Testbed: bed, source: source, memory: m}
}

// sink is the file with all events.
func (h host) sink() string { return filepath.Join(h.Folder, "events.jsonl") }

// settings of one node; the zero value is what most stories want.
type settings struct {
	// database and source are URLs in the place of the host's.
	database, source string
	// ttl of the leases in the place of the shortest that is allowed.
	ttl time.Duration
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
	return h.launch(t, h.config(name, s))
}

// config is the configuration of a node. All of a host share its sink.
func (h host) config(name string, s settings) process.Config {
	return process.Config{
		Node: name, Database: cmp.Or(s.database, h.memory.url), Sources: map[string]string{"shop": cmp.Or(s.source, h.source)},
		Access: h.access, Observers: observed(h.owner), Files: map[string]string{"file": h.sink()},
		TTL: cmp.Or(s.ttl, h.memory.ttl()), Shutdown: shutdownTimeout,
	}
}

// launch runs a node with that configuration.
func (h host) launch(t *testing.T, c process.Config) *daemon {
	t.Helper()
	p, err := h.Launch(context.WithoutCancel(t.Context()), "", c)
	must(t, err)
	return kept(t, p)
}

// command runs a one-shot command with the configuration of a node.
func (h host) command(t *testing.T, name string, args ...string) {
	t.Helper()
	d := run(t, name+" "+strings.Join(args, " "), filepath.Join(h.Folder, name), syscall.SysProcAttr{}, args...)
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
		Binary: os.Getenv(envBinary), Name: "status", Folder: filepath.Join(h.Folder, name), Args: []string{"status"}, Stdout: &out,
		LogFile: filepath.Join(t.TempDir(), "log"),
	})
	return out.String(), err
}
