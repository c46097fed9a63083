package torture

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/test/kit/daemon"
)

// node is a member of the cluster: a process that is started again whenever it
// has ended.
type node struct {
	cluster              *cluster
	name, folder         string
	coordination, source *gate // the first is nil where the database is a file, the second of a program
	config               daemon.Config

	mu      sync.Mutex
	process *daemon.Process    // nil between two processes
	changed chan struct{}      // closed when process changes
	env     []string           // of the next starts
	frozen  int                // how many faults have it stopped
	last    map[string]float64 // the counters of process, as they were read last
	told    *daemon.Process    // the one that was told to end, or killed
	narrow  map[string]bool    // the streams of which the next starts leave columns out
	starts  int
}

// openNode makes the node's ways to the servers and its configuration.
func openNode(ctx context.Context, c *cluster, name string) (n *node, err error) {
	n = &node{cluster: c, name: name, folder: filepath.Join(c.options.Dir, name), changed: make(chan struct{}), narrow: make(map[string]bool)}
	if n.source, err = openGate(ctx, c.source.address()); err != nil {
		return nil, err
	}
	address := ""
	if c.coordination != nil {
		if n.coordination, err = openGate(ctx, c.coordination.address()); err != nil {
			return n, err
		}
		address = n.coordination.Addr()
	}
	database, err := c.database(address, name)
	if err != nil {
		return n, err
	}
	source, err := through(c.source.url(), n.source.Addr(), url.UserPassword(role(name), password), "")
	if err != nil {
		return n, err
	}
	n.config = c.config(name, database, source)
	return n, nil
}

func (n *node) close() {
	if n.coordination != nil {
		n.coordination.Close()
	}
	if n.source != nil {
		n.source.Close()
	}
}

// live keeps a process running until ctx ends, or the cluster stops.
func (n *node) live(ctx context.Context) {
	for first := true; ; first = false {
		s := n.cluster.nextStart()
		if !first && !sleep(ctx, s.After) || n.cluster.stopping.Load() || ctx.Err() != nil {
			return
		}
		if n.cluster.calm.Load() {
			s.Failpoints = ""
		}
		p, err := n.start(ctx, s)
		if err != nil {
			n.cluster.fail(err)
			return
		}
		n.watch(ctx, p, s)
	}
}

func (n *node) start(ctx context.Context, s Start) (*daemon.Process, error) {
	config := n.config
	n.mu.Lock()
	narrow := maps.Clone(n.narrow)
	n.mu.Unlock()
	if n.cluster.calm.Load() {
		narrow = nil // All have the same file at last.
	}
	config.Observers = n.cluster.options.observers(s.Chunk, narrow)
	if err := config.Write(n.folder); err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.starts++
	env := append([]string(nil), n.env...)
	log := filepath.Join(n.folder, fmt.Sprintf("%s-%03d.log", n.name, n.starts))
	n.mu.Unlock()
	if s.Failpoints != "" {
		env = append(env, failpoint.Variable+"="+s.Failpoints)
	}
	p, err := daemon.Start(ctx, daemon.Options{Binary: n.cluster.options.Binary, Name: n.name, Folder: n.folder, Env: env, LogFile: log})
	if err != nil {
		return nil, err
	}
	n.cluster.owns(n, p)
	n.set(p)
	return p, nil
}

func (n *node) set(p *daemon.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process = p
	close(n.changed)
	n.changed = make(chan struct{})
}

// every waits for the next tick; false when ctx or the process has ended.
func every(ctx context.Context, ended <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ended:
		return false
	case <-ctx.Done():
		return false
	}
}

// sleep lets time pass; false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	return every(ctx, nil, d)
}

// running returns the present process, or waits a moment for the next one.
func (n *node) running(ctx context.Context) (*daemon.Process, bool) {
	return n.next(ctx, nil, 4*time.Second)
}

// next returns the first process that is not the one before.
func (n *node) next(ctx context.Context, before *daemon.Process, limit time.Duration) (*daemon.Process, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		n.mu.Lock()
		p, changed := n.process, n.changed
		n.mu.Unlock()
		if p != nil && p != before {
			return p, true
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil, false
		case <-ctx.Done():
			return nil, false
		}
	}
}

// faultyLimit is how long a fault waits for a process to be ready, which other
// faults may keep from that. calmLimit is for times without faults, when only a busy
// machine can.
const (
	faultyLimit = 15 * time.Second
	calmLimit   = time.Minute
)

// back waits until the process that follows is ready, for a while.
func (n *node) back(ctx context.Context, before *daemon.Process) bool {
	return n.backWithin(ctx, before, faultyLimit)
}

func (n *node) backWithin(ctx context.Context, before *daemon.Process, limit time.Duration) bool {
	p, ok := n.next(ctx, before, limit)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return p.Ready(ctx) == nil
}

// freeze stops a process; thaw continues it when nobody else wants it stopped.
func (n *node) freeze(p *daemon.Process) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen++
	return p.Signal(syscall.SIGSTOP)
}

func (n *node) thaw(p *daemon.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen--; n.frozen == 0 {
		_ = p.Signal(syscall.SIGCONT) // It may have been killed meanwhile.
	}
}

// with sets the environment of the next starts.
func (n *node) with(env ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.env = env
}

// redefine gives the next starts a file that defines a stream in the other way.
func (n *node) redefine(stream string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.narrow[stream] = !n.narrow[stream]
}

// gates are the node's ways to a place.
func (n *node) gates(where string) []*gate {
	switch where {
	case atCoordination:
		return []*gate{n.coordination}
	case atSource:
		return []*gate{n.source}
	}
	return []*gate{n.coordination, n.source}
}
