//go:build nightly

package delivery

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/simtest"
	"github.com/observerd/observerd/test/kit/waittest"
	"github.com/observerd/observerd/test/suite/torture/mutant"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(pgtest.Wrap(m)) }

const (
	sinkID = "bus"
	// ttl is that of the lease of a relay.
	ttl = 4 * time.Second
	// patience is how long something may take that takes seconds on a machine at rest.
	patience = 5 * time.Minute
)

var streams = []string{"orders", "stock", "tasks"}

// target is a server that events are delivered to.
type target interface {
	// entry is that of the list of sinks for a node whose way to the server this proxy is.
	entry(way *netfault.Proxy) string
	// ways are so many proxies before the server.
	ways(t *testing.T, n int) []*netfault.Proxy
	// carries reports whether a piece on its way to the server has events, or their commit.
	carries(piece []byte) bool
	kill(ctx context.Context) error
	start(ctx context.Context) error
	// consumed is what a consumer has seen, in its order.
	consumed(ctx context.Context) ([]seen, error)
}

// restorable is a target that can be taken back to an earlier state. No node runs meanwhile.
type restorable interface {
	backUp(ctx context.Context) error
	restore(ctx context.Context) error
}

// world is a run: two nodes, the databases of their log and of their source, and a target.
type world struct {
	t      *testing.T
	target target
	pg     *pgtest.Server
	binary string
	nodes  []*node
	rng    *rand.Rand // of the plan
	calm   atomic.Bool
	bit    map[string]int // how often a fault has struck, by kind
	seed   uint64

	dealing sync.Mutex
	points  *rand.Rand
	starts  int
	deck    []int // the places of the next failpoints
}

// node is started again whenever its process has ended.
type node struct {
	name, folder string
	way          *netfault.Proxy

	mu      sync.Mutex
	process *daemon.Process
	points  map[string]int // how often a failpoint has struck
}

func newWorld(t *testing.T, tg target) *world {
	t.Helper()
	seed := cmp.Or(number(os.Getenv("OBSERVERD_TORTURE_SEED")), simtest.Seed()>>1)
	t.Logf("OBSERVERD_TORTURE_SEED=%d repeats this", seed)
	w := &world{
		t: t, target: tg, pg: pgtest.Start(t, pgtest.Options{}), binary: filepath.Join(t.TempDir(), "observerd"),
		rng: rand.New(rand.NewPCG(seed, 0)), points: rand.New(rand.NewPCG(seed, 1)), bit: make(map[string]int), seed: seed,
	}
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Out: w.binary, Tags: "failpoints", Overlay: overlay(t)}); err != nil {
		t.Fatal(err)
	}
	w.execute("postgres", "CREATE DATABASE log", "CREATE DATABASE source")
	for _, stream := range streams {
		w.execute("source", fmt.Sprintf("CREATE TABLE %s (id bigint PRIMARY KEY, n bigint NOT NULL, updated_at timestamptz NOT NULL DEFAULT clock_timestamp())", stream))
	}
	for i, way := range tg.ways(t, 2) {
		name := string(rune('a' + i))
		n := &node{name: name, folder: filepath.Join(t.TempDir(), name), way: way, points: make(map[string]int)}
		config := daemon.Config{
			Node: name, Database: w.pg.URL("log"), Sources: map[string]string{"source": w.pg.URL("source")}, TTL: ttl, LogLevel: "info",
			Observers: []string{
				"{id: orders, type: order, source: source, table: orders, key: id, timestamp: updated_at}",
				"{id: stock, type: inventory, source: source, table: stock, key: id}",
				"{id: tasks, type: wes, source: source, table: tasks, key: id, timestamp: updated_at}",
			},
			Sinks: []string{tg.entry(way)},
		}
		if err := config.Write(n.folder); err != nil {
			t.Fatal(err)
		}
		w.nodes = append(w.nodes, n)
	}
	return w
}

// overlay has the program lack the steps of a mutant, which this is to notice; empty for none.
func overlay(t *testing.T) string {
	t.Helper()
	name := os.Getenv("OBSERVERD_TORTURE_MUTANT")
	if name == "" {
		return ""
	}
	root, err := daemon.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutant.All() {
		if m.Name != name {
			continue
		}
		overlay, err := m.Apply(root, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return overlay
	}
	t.Fatalf("there is no mutant %s", name)
	return ""
}

func number(text string) (n uint64) {
	_, _ = fmt.Sscan(text, &n) // Nothing is 0.
	return n
}

func (w *world) execute(database string, statements ...string) {
	w.t.Helper()
	if err := pgtest.Execute(w.t.Context(), w.pg.URL(database), statements...); err != nil {
		w.t.Fatal(err)
	}
}

// query returns the rows of a statement in the log.
func query[T any](w *world, row pgx.RowToFunc[T], statement string, args ...any) []T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.pg.URL("log"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, _ := conn.Query(ctx, statement, args...) // The error comes with the rows.
	all, err := pgx.CollectRows(rows, row)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// log is what is in the event log.
func (w *world) log() []seen {
	w.t.Helper()
	return query(w, func(row pgx.CollectableRow) (e seen, err error) {
		err = row.Scan(&e.stream, &e.seq, &e.id, &e.key)
		return e, err
	}, "SELECT stream, seq, event_id::text, subject FROM obs_event ORDER BY stream, seq")
}

// backlog is how many events the sink has not stored, of all that there are.
func (w *world) backlog() (waiting, all int64) {
	w.t.Helper()
	both := query(w, pgx.RowTo[[]int64], `
SELECT ARRAY [count(*) FILTER (WHERE e.seq > coalesce(o.last_seq, 0)), count(*)]
  FROM obs_event e LEFT JOIN obs_sink_offset o ON o.sink = $1 AND o.stream = e.stream`, sinkID)
	return both[0][0], both[0][1]
}

// write changes rows of the source until ctx ends: of each table some, over and over.
func (w *world) write(ctx context.Context) {
	conn, err := pgx.Connect(ctx, w.pg.URL("source"))
	if err != nil {
		w.t.Error(err)
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rng := rand.New(rand.NewPCG(w.seed, 99))
	for n := 1; ctx.Err() == nil; n++ {
		table := streams[rng.IntN(len(streams))]
		id := rng.IntN(200)
		if table == "orders" {
			id = n // Of orders new ones alone are observed.
		}
		_, err := conn.Exec(ctx, "INSERT INTO "+table+" AS s (id, n) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET n = s.n + 1, updated_at = clock_timestamp()", id+1_000_000*w.bit["chapter"])
		if err != nil && ctx.Err() == nil {
			w.t.Error(err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// while writes to the source for as long as f runs.
func (w *world) while(f func()) {
	w.bit["chapter"]++
	ctx, cancel := context.WithCancel(w.t.Context())
	var writing sync.WaitGroup
	writing.Go(func() { w.write(ctx) })
	defer writing.Wait()
	defer cancel()
	f()
}

// live keeps a process of the node running until ctx ends, and asks it to end then.
func (w *world) live(ctx context.Context, n *node) {
	for ctx.Err() == nil {
		var env []string
		if !w.calm.Load() {
			env = append(env, failpoint.Variable+"="+w.point())
		}
		p, err := daemon.Start(w.t.Context(), daemon.Options{Binary: w.binary, Name: n.name, Folder: n.folder, Env: env})
		if err != nil {
			w.t.Error(err)
			return
		}
		n.set(p)
		woken := make(chan struct{})
		go func() {
			defer close(woken)
			n.wake(p)
		}()
		select {
		case <-p.Exited():
		case <-ctx.Done():
			_ = p.Signal(syscall.SIGCONT)
			stop, cancel := context.WithTimeout(w.t.Context(), patience)
			if code, err := p.Stop(stop); err != nil || code != 0 && code != -1 {
				w.t.Errorf("node %s ended with %d: %v\n%s", n.name, code, err, p.Log.Tail(1000))
			}
			cancel()
		}
		<-woken
		n.note(p)
	}
}

func (n *node) set(p *daemon.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process = p
}

// present returns the process; nil before the first one.
func (n *node) present() *daemon.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// points are those of a relay.
var points = []string{
	"relay.claimed=kill", "relay.read=kill", "relay.stored=kill", "relay.moved=kill", "relay.claimed=stop", "relay.read=stop", "relay.stored=stop",
}

// point are the failpoints of the next start: two of those that have not struck yet, or of the
// next in turn, at one of the first eight batches, or none, for a node that lives until a fault
// strikes.
func (w *world) point() string {
	w.dealing.Lock()
	defer w.dealing.Unlock()
	var rules []string
	if w.starts++; w.starts%3 == 0 {
		return ""
	}
	for range 2 {
		if len(w.deck) == 0 {
			w.deck = w.points.Perm(len(points))
			struck := w.pointsStruck()
			if due := slices.DeleteFunc(slices.Clone(w.deck), func(i int) bool { return struck[points[i]] > 0 }); len(due) > 0 {
				w.deck = due
			}
		}
		rule := points[w.deck[0]]
		w.deck = w.deck[1:]
		if !strings.HasPrefix(rule, "relay.claimed") {
			rule = fmt.Sprintf("%s@%d", rule, 1+w.points.IntN(8))
		}
		rules = append(rules, rule)
	}
	return strings.Join(rules, ";")
}

// wake lets a process that a failpoint has stopped go on when its lease is another's, most
// times.
func (n *node) wake(p *daemon.Process) {
	for woken := 0; p.Running(); time.Sleep(200 * time.Millisecond) {
		if p.Log.Count("failpoint name=", "action=stop") > woken {
			time.Sleep(ttl/2 + rand.N(2*ttl))
			_ = p.Signal(syscall.SIGCONT)
			woken++
		}
	}
}

// note takes in which failpoint has struck.
func (n *node) note(p *daemon.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, point := range points {
		name, action, _ := strings.Cut(point, "=")
		if p.Log.Count("failpoint name="+name+" ", "action="+action) > 0 {
			n.points[point]++
		}
	}
}

// run keeps the nodes running while f does, and returns when all have ended in order.
func (w *world) run(f func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var living sync.WaitGroup
	for _, n := range w.nodes {
		living.Go(func() { w.live(ctx, n) })
	}
	defer living.Wait()
	defer cancel()
	f()
}

// wait waits until something holds.
func (w *world) wait(what string, limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	w.t.Logf("waited for %s in vain", what)
	return false
}

// drain waits until all of the source is observed and all of the log delivered, with the
// operator's help, and ends the nodes.
func (w *world) drain(help func()) {
	w.t.Helper()
	w.calm.Store(true)
	defer w.calm.Store(false)
	for range 5 {
		w.run(func() {
			quiet, last := time.Now(), int64(-1)
			drained := w.wait("the end of the deliveries", patience, func() bool {
				help()
				waiting, all := w.backlog()
				if waiting > 0 || all != last {
					quiet, last = time.Now(), all
				}
				return time.Since(quiet) > 6*time.Second
			})
			if !drained {
				w.t.Fatalf("the sink stores no more: %v", w.complaints())
			}
		})
		if waiting, _ := w.backlog(); waiting == 0 {
			return
		}
	}
	w.t.Fatal("there is always something left")
}

// complaints are what the relay says of the sink.
func (w *world) complaints() []string {
	return query(w, pgx.RowTo[string], "SELECT last_error FROM obs_sink_offset WHERE sink = $1 AND last_error <> ''", sinkID)
}

// operate runs a command of the operator, on the first node.
func (w *world) operate(args ...string) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	return daemon.Run(ctx, daemon.Options{Binary: w.binary, Name: "operator", Folder: w.nodes[0].folder, Args: args})
}

// adoptHalted adopts the streams that the relay says are halted, as the operator's guide has
// it, once each.
func (w *world) adoptHalted(adopted map[string]bool) {
	for _, complaint := range w.complaints() {
		for _, stream := range streams {
			_, why, found := strings.Cut(complaint, stream+" is not delivered: ")
			if !found || !strings.HasPrefix(why, "the sink holds ") || adopted[stream] {
				continue
			}
			if err := w.operate("sinks", "adopt", sinkID, "--stream", stream, "--yes", "--reason", "the log went back"); err != nil {
				w.t.Log(err)
				continue
			}
			adopted[stream] = true
		}
	}
}

// copyDatabase makes a database anew: as another one is, or empty.
func copyDatabase(ctx context.Context, s *pgtest.Server, to, from string) error {
	return pgtest.Execute(ctx, s.URL("postgres"),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ('"+from+"', '"+to+"')",
		"DROP DATABASE IF EXISTS "+to+" WITH (FORCE)", "CREATE DATABASE "+to+" TEMPLATE "+from)
}
