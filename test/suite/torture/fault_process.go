package torture

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/netfault"
)

// inject is what a kind of fault does: see [kind].
type inject func(ctx context.Context, c *cluster, f Planned) (bit bool, detail string)

const notRunning = "the node was not running"

// ofProcess is a fault that strikes the process of a node.
func ofProcess(strike func(ctx context.Context, n *node, p *daemon.Process, f Planned) (bit bool, detail string)) inject {
	return func(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
		n := c.node(f.Node)
		p, ok := n.running(ctx)
		if !ok {
			return false, notRunning
		}
		return strike(ctx, n, p, f)
	}
}

// kill ends a process at once.
func kill(ctx context.Context, n *node, p *daemon.Process, _ Planned) (bit bool, detail string) {
	n.tell(p).Kill()
	n.back(ctx, p)
	return p.ExitCode() == -1, ""
}

// terminate ends a process as a service manager does.
func terminate(ctx context.Context, n *node, p *daemon.Process, _ Planned) (bit bool, detail string) {
	detail = n.terminate(ctx, p)
	n.back(ctx, p)
	return true, detail
}

// stopLimit is how long a process may take to end: its polls' time and the
// program's own grace.
const stopLimit = 30 * time.Second

// terminate waits for the end of the process, and says how it ended.
func (n *node) terminate(ctx context.Context, p *daemon.Process) (detail string) {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	code, err := n.tell(p).Stop(ctx)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("exit code %d", code)
}

// rollingRestart ends all processes one after the other; each is ready before
// the next one ends.
func rollingRestart(ctx context.Context, c *cluster, _ Planned) (bit bool, detail string) {
	bit = true
	for _, n := range c.nodes {
		p, ok := n.running(ctx)
		if !ok {
			return false, notRunning
		}
		detail += n.name + ": " + n.terminate(ctx, p) + "; "
		bit = n.back(ctx, p) && bit
	}
	return bit, detail
}

// stop puts a process to sleep for longer than its leases last.
func stop(ctx context.Context, n *node, p *daemon.Process, f Planned) (bit bool, detail string) {
	defer n.thaw(p)
	if err := n.freeze(p); err != nil {
		return false, err.Error()
	}
	every(ctx, p.Exited(), f.For)
	return p.Running(), ""
}

// stopInCommit puts a process to sleep when its commit is on its way, and lets
// the commit arrive when the lease has ended. It bites when the node has met the
// refusal.
func stopInCommit(ctx context.Context, n *node, p *daemon.Process, f Planned) (bit bool, detail string) {
	before, err := n.peek(ctx, p)
	if err != nil {
		return false, "the node does not answer"
	}
	release := make(chan struct{})
	caught, letGo, ok := n.coordination.catch(IsCommit, netfault.Fault{Hold: release})
	if !ok {
		close(release)
		return false, "another fault waits for a commit"
	}
	defer letGo()
	arrive := sync.OnceFunc(func() { close(release) })
	defer arrive()
	if !received(ctx, caught, watchFor) {
		return false, "there was no commit"
	}
	letGo()
	if err := n.freeze(p); err != nil {
		n.thaw(p)
		return false, err.Error()
	}
	every(ctx, p.Exited(), f.For)
	// The answer is there when the process wakes, and tells that it is refused.
	arrive()
	every(ctx, p.Exited(), answerTime)
	n.thaw(p)
	return n.grows(ctx, p, staleCommits, before.Sum(staleCommits)), ""
}

// staleCommits is the counter of commits that were refused.
const staleCommits = "observerd_stale_commits_refused_total"

// answerTime is what a server needs to refuse a commit.
const answerTime = 200 * time.Millisecond

// watchFor is how long a fault waits for the request that it wants.
const watchFor = 8 * time.Second

// received waits for a signal; false when there was none in time.
func received(ctx context.Context, signal <-chan struct{}, limit time.Duration) bool {
	return !every(ctx, signal, limit) && ctx.Err() == nil
}

// offsets are by how much a clock is set wrong.
var offsets = []time.Duration{time.Hour, -time.Hour, 2 * time.Minute, -2 * time.Minute, 25 * time.Hour, -25 * time.Hour, 3 * time.Second, -3 * time.Second}

// clock starts a process with a clock that is wrong, and later with a right one.
func clock(ctx context.Context, n *node, p *daemon.Process, f Planned) (bit bool, detail string) {
	offset := offsets[f.Number%len(offsets)]
	n.with(fmt.Sprintf("%s=%s", failpoint.ClockVariable, offset))
	n.terminate(ctx, p)
	bit = n.back(ctx, p)
	sleep(ctx, f.For)
	n.with()
	if p, ok := n.running(ctx); ok {
		n.terminate(ctx, p)
		n.back(ctx, p)
	}
	return bit, offset.String()
}

// turns is how many a fault waits for beside its time, where it waits for polls.
const turns = 2

// redefine restarts a node with a file that names other columns of a stream, and
// leaves it at that. It bites when the cluster polls by another definition then.
func redefine(ctx context.Context, n *node, p *daemon.Process, f Planned) (bit bool, detail string) {
	c := n.cluster
	definition := fmt.Sprintf("SELECT definition FROM obs_cursor WHERE stream = '%s'", f.Where)
	first, cancel := context.WithTimeout(ctx, turns*c.options.Interval)
	before := c.shows(first, definition)
	cancel()
	if before == "" {
		return false, f.Where + ": not polled yet"
	}
	n.redefine(f.Where)
	n.terminate(ctx, p)
	n.back(ctx, p)
	// The turn has to come to this node.
	limit := f.For + time.Duration(turns+c.options.Nodes)*c.options.Interval
	for end := time.Now().Add(limit); time.Now().Before(end) && sleep(ctx, 100*time.Millisecond); {
		if now, err := c.shown(ctx, definition); err == nil && now != before {
			return true, f.Where
		}
	}
	return false, f.Where + ": the cluster keeps its definition"
}

// fullDisk lets no file of any process grow beyond the size that the sink has,
// and a little: the last line of a batch may be torn. It lasts until somebody has met
// it, as where polls are far apart.
func fullDisk(ctx context.Context, c *cluster, f Planned) (bit bool, detail string) {
	info, err := os.Stat(c.sink())
	if err != nil {
		return false, "there is no sink yet"
	}
	size := info.Size() + int64(f.Number)*5
	var limited []*daemon.Process
	before := 0
	for _, n := range c.nodes {
		if p, ok := n.running(ctx); ok && limitFiles(p.PID(), uint64(size)) == nil { //nolint:gosec // Sizes are not negative.
			limited = append(limited, p)
			before += refusedWrites(p)
		}
	}
	sleep(ctx, f.For)
	refused := func() (all int) {
		for _, p := range limited {
			all += refusedWrites(p)
		}
		return all
	}
	for end := time.Now().Add(c.options.Interval); refused() == before && time.Now().Before(end) && sleep(ctx, time.Second); {
		continue
	}
	for _, p := range limited {
		_ = limitFiles(p.PID(), 0) // Of one that has ended there is nothing to lift.
	}
	return refused() > before, fmt.Sprintf("%d processes, %d bytes", len(limited), size)
}

// refusedWrites counts what a process has said of a file that may not grow: in
// the words of the kernel, and in those of SQLite.
func refusedWrites(p *daemon.Process) int {
	return p.Log.Count("file too large") + p.Log.Count("disk I/O error")
}
