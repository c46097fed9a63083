package torture

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/workload"
	"github.com/observerd/observerd/test/suite/torture/audit"
	"github.com/observerd/observerd/test/suite/torture/history"
	"github.com/observerd/observerd/test/suite/torture/pglog"
)

// cluster is all that a run has started.
type cluster struct {
	options              Options
	plan                 Plan
	began                time.Time
	coordination, source *server
	standby              *standby
	ledger               *audit.DB // the coordination database, in the harness's own eyes
	nodes, programs      []*node
	writers              *workload.Writers
	faults               faultLog
	counters             tally
	canary               canary
	starts               atomic.Int64
	// calm is set when no more faults are to strike, stopping when nodes that
	// end are not to be started again.
	calm, stopping atomic.Bool
	living         sync.WaitGroup
	telling        sync.Mutex

	mu     sync.Mutex
	failed error
	pids   map[string]string // the nodes of all processes
}

// worker is the role of nodes and operators in the coordination database. It is
// no superuser: those are let in whatever the limit of sessions is.
const worker = "observerd"

var admitWorkers = []string{
	"CREATE ROLE " + worker + " LOGIN PASSWORD '" + password + "'",
	"GRANT CREATE, USAGE ON SCHEMA public TO " + worker,
}

// database is the URL of the coordination database by that way to its server.
// The standby comes second: a node must not take it for the server.
func (c *cluster) database(address, application string) (string, error) {
	if c.coordination == nil {
		return c.url(), nil
	}
	return through(c.coordination.url(), address+","+c.standby.way.Addr(), url.UserPassword(worker, password), application)
}

// url is that of the coordination database for the harness.
func (c *cluster) url() string {
	if c.coordination == nil {
		return "sqlite:" + filepath.Join(c.options.Dir, "coordination", "observerd.db")
	}
	return c.coordination.url()
}

// shown reads what a statement shows in the coordination database.
func (c *cluster) shown(ctx context.Context, statement string) (value string, err error) {
	err = c.ledger.QueryRowContext(ctx, statement).Scan(&value)
	return value, err
}

// password is that of nodes in both servers.
const password = "password-" + workload.Mark

// role is a node's in the source.
func role(node string) string { return "poller_" + node }

// queryTimeout ends the reads of sources that have gone away without a word.
// What ships waits longer, and so would the run.
const queryTimeout = 4 * time.Second

// sinkID is that of the one sink, a file that all nodes share.
const sinkID = "file"

func (c *cluster) sink() string { return filepath.Join(c.options.Dir, "events.jsonl") }

// shelves is how many streams there are beside those of the clerks and the keeper.
func (o Options) shelves() int { return max(0, o.Types-len(streams)) }

// schedule are the streams of a run, each of a type of its own.
func (o Options) schedule() []history.Stream {
	stream := func(name, typ string, mode history.Mode) history.Stream {
		return history.Stream{Name: name, Type: typ, Mode: mode, Table: name, LockKey: typ + "-observer-poll"}
	}
	tasks := stream(workload.Tasks, "wes", history.ModeChange)
	tasks.Table = workload.Worklist
	all := []history.Stream{
		stream(workload.Orders, "order", history.ModeNew),
		tasks,
		stream(workload.Stock, "inventory", history.ModeSnapshot),
	}
	for i := range o.shelves() {
		name := workload.Shelf(i + 1)
		all = append(all, stream(name, name, history.ModeSnapshot))
	}
	return all
}

// rowsOf are the keys of an observer that say how its table is read.
func (o Options) rowsOf(stream string) string {
	switch stream {
	case workload.Orders:
		return "key: order_id, timestamp: updated_at"
	case workload.Tasks:
		return "key: task_id, timestamp: updated_at"
	case workload.Stock:
		// A poll has time for a third of the stock. Among many types two cores leave it
		// little, so it has more.
		return fmt.Sprintf("key: sku, max-rate: 40, poll-timeout: %s", max(time.Second, o.Interval/3))
	}
	return "key: slot, detect: snapshot, event: ShelfObservedEvent"
}

// observers are the entries of the configuration. Those that are narrow leave
// columns out.
func (o Options) observers(chunk int, narrow map[string]bool) []string {
	var entries []string
	for _, s := range o.schedule() {
		from := "table: " + s.Table
		if s.Name == workload.Orders && o.shelves() > 0 {
			from = "query: SELECT * FROM " + s.Table
		}
		entry := fmt.Sprintf("id: %s, type: %s, source: source, %s, %s, chunk-size: %d", s.Name, s.Type, from, o.rowsOf(s.Name), chunk)
		if narrow[s.Name] {
			entry += ", columns: [n]"
		}
		entries = append(entries, "{"+entry+"}")
	}
	return entries
}

func (c *cluster) config(node, database, source string) daemon.Config {
	return daemon.Config{
		Node: node, Database: database, Sources: map[string]string{"source": source}, Observers: c.options.observers(chunks[0], nil),
		Files:    map[string]string{sinkID: c.sink()},
		Interval: c.options.Interval, TTL: c.options.TTL, QueryTimeout: queryTimeout,
	}
}

// open starts the servers and prepares them, the nodes' ways to them, and an
// operator.
func (c *cluster) open(ctx context.Context) (err error) {
	if err := c.openCoordination(ctx); err != nil {
		return err
	}
	if c.source, err = openServer(ctx, atSource, pglog.Settings()); err != nil {
		return err
	}
	var roles []string
	for _, name := range c.options.names() {
		roles = append(roles, role(name))
		statements := append([]string{"CREATE ROLE " + role(name) + " LOGIN PASSWORD '" + password + "'"}, pglog.RoleSettings(role(name))...)
		if err := c.source.execute(ctx, statements...); err != nil {
			return err
		}
	}
	if err := workload.Create(ctx, c.source.url(), c.options.shelves(), roles...); err != nil {
		return err
	}
	if err := c.hireOperator(ctx); err != nil {
		return err
	}
	if err := audit.Install(ctx, c.url(), c.options.schedule(), c.options.TTL); err != nil {
		return err
	}
	for _, name := range c.options.names() {
		n, err := openNode(ctx, c, name)
		if n != nil {
			c.nodes = append(c.nodes, n)
		}
		if err != nil {
			return err
		}
	}
	return c.openPrograms(ctx)
}

// openCoordination starts the coordination server, if there is one, and a standby.
func (c *cluster) openCoordination(ctx context.Context) (err error) {
	if c.options.Coordination == PostgreSQL {
		if c.coordination, err = openServer(ctx, atCoordination, map[string]string{"wal_keep_size": "1GB", "track_commit_timestamp": "on"}); err != nil {
			return err
		}
		if err := c.coordination.execute(ctx, admitWorkers...); err != nil {
			return err
		}
		if c.standby, err = openStandby(ctx, c.coordination); err != nil {
			return err
		}
	}
	c.ledger, err = audit.Open(c.url())
	return err
}

// writer names the node behind a writer that the audit has noted; empty for none.
func (c *cluster) writer(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.coordination == nil {
		return c.pids[name]
	}
	if c.node(name) == nil {
		return ""
	}
	return name
}

// owns notes whose process that is.
func (c *cluster) owns(n *node, p *daemon.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pids == nil {
		c.pids = make(map[string]string)
	}
	c.pids[strconv.Itoa(p.PID())] = n.name
}

// nextStart is how the next process is started.
func (c *cluster) nextStart() Start {
	n := c.starts.Add(1) - 1
	return c.plan.Starts[int(n)%len(c.plan.Starts)]
}

func (c *cluster) node(name string) *node {
	for _, n := range slices.Concat(c.nodes, c.programs) {
		if n.name == name {
			return n
		}
	}
	return nil
}

// fail keeps an error of the harness; the run ends with it.
func (c *cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = errors.Join(c.failed, err)
}

func (c *cluster) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// start lets all nodes live, and waits until they are ready.
func (c *cluster) start(ctx context.Context) error {
	for _, n := range c.nodes {
		c.living.Go(func() { n.live(ctx) })
	}
	for _, n := range c.nodes {
		if !n.backWithin(ctx, nil, calmLimit) {
			return errors.Join(fmt.Errorf("node %s did not become ready", n.name), c.failure())
		}
	}
	for _, n := range c.programs {
		c.living.Go(func() { n.hold(ctx) })
	}
	return nil
}

// close ends whatever still runs. The processes end with ctx.
func (c *cluster) close() error {
	c.living.Wait()
	var errs []error
	for _, n := range slices.Concat(c.nodes, c.programs) {
		n.close()
	}
	if c.ledger != nil {
		errs = append(errs, c.ledger.Close())
	}
	if c.standby != nil {
		errs = append(errs, c.standby.close())
	}
	for _, s := range []*server{c.coordination, c.source} {
		if s != nil {
			errs = append(errs, s.pg.Close())
		}
	}
	return errors.Join(errs...)
}

// makeFolder makes the run's folder; what an earlier run left there is not
// mixed with this one.
func makeFolder(dir string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("the folder %s is not empty", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Whoever reads the report may look into it.
		return fmt.Errorf("make the run's folder: %w", err)
	}
	return nil
}
