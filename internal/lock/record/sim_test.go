package record_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/record"
	"github.com/observerd/observerd/test/kit/simtest"
)

var simKeys = []string{"order", "wes"}

// TestSimulatedProcesses lets processes compete for locks in a store of records while their
// calls fail, are late, lag behind, or are carried out behind their back, and processes sleep,
// die and steal. No lock is taken over while its holder trusts its lease, fences grow with each
// acquisition, no write of a term comes after one of a later term, and once the faults are over
// every lock is held again.
func TestSimulatedProcesses(t *testing.T) {
	t.Parallel()
	tally := simtest.Check(t, func(t *rapid.T, tally *simtest.Tally) {
		kind := rapid.SampledFrom([]string{"counted", "numbered", "with beats"}).Draw(t, "store")
		m := &simulation{world: newWorld(tally, kind), ttl: rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, time.Minute}).Draw(t, "ttl")}
		defer m.end()
		for i, name := range []string{"a", "b", "c"} {
			m.nodes = append(m.nodes, m.start(name, uint64(i)))
		}
		t.Repeat(simtest.Actions{
			"": m.check, "pass": m.pass, "fault": m.fault, "cut": m.cut, "reconnect": m.reconnect,
			"lag": m.lag, "pause": m.pause, "resume": m.resume, "restart": m.restart, "steal": m.steal,
		}.Often(7, "pass").Often(4, "fault"))
		m.heal(t)
	})
	tally.Demand(t, "write accepted", "stale write refused", "taken over", "released", "stolen", "lease lost", "beat")
}

// world is the store, a resource that compares fences, and what must be true of both.
type world struct {
	store   *store
	tally   *simtest.Tally
	journal *simtest.Journal
	work    sync.WaitGroup

	mu     sync.Mutex
	wrong  string
	lost   int
	holds  map[string]*hold   // by term
	stolen map[string]bool    // terms
	beats  map[string][]int64 // by term, where the store has them
	stamp  atomic.Int64       // of the last beat
	fences map[string]int64   // the last that was granted, by key
	terms  map[string]string
	writes map[string]int64 // the greatest fence of a write, by key
}

func newWorld(tally *simtest.Tally, kind string) *world {
	w := &world{
		store: &store{numbered: kind == "numbered"}, tally: tally, journal: simtest.NewJournal(), holds: make(map[string]*hold),
		stolen: make(map[string]bool), fences: make(map[string]int64), terms: make(map[string]string), writes: make(map[string]int64),
	}
	w.store.wrote = w.wrote
	if kind == "with beats" {
		w.beats = make(map[string][]int64)
	}
	return w
}

func (w *world) brokenLocked(rule string) {
	if w.wrong == "" {
		w.wrong = rule
		w.journal.Close(rule)
	}
}

// wrote judges what was just stored.
func (w *world) wrote(before, now record.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fence := cmp.Or(now.Fence, now.Revision, now.Transitions)
	switch now.Term {
	case "":
		w.tally.Count("released")
	case before.Term:
		if fence != w.fences[now.Key] {
			w.brokenLocked("renewal changes the fence")
		}
	default:
		if fence <= w.fences[now.Key] {
			w.brokenLocked("fence does not grow")
		}
		w.fences[now.Key] = fence
		w.terms[fmt.Sprint(now.Key, fence)] = now.Term
		if before.Term == "" {
			return
		}
		w.tally.Count("taken over")
		if h := w.holds[before.Term]; h != nil && h.trusted() && !w.stolen[before.Term] {
			w.brokenLocked("lock taken over while its holder trusts it")
		}
	}
}

// wire is the store as one process reaches it.
type wire struct {
	*store
	*simtest.Wire
	lags  *atomic.Bool
	world *world
}

// beaten is a record as its version says with the beats of its term, of which a reader that lags
// does not see the last.
func (w wire) beaten(r record.Record) record.Record {
	w.world.mu.Lock()
	defer w.world.mu.Unlock()
	beats := w.world.beats[r.Term]
	if w.lags.Load() && len(beats) > 0 {
		beats = beats[:len(beats)-1]
	}
	if r.Term != "" && len(beats) > 0 {
		r.Version = fmt.Sprint(r.Version, " ", beats[len(beats)-1])
	}
	return r
}

func (w wire) Beat(ctx context.Context, r record.Record) (string, error) {
	r.Version, _, _ = strings.Cut(r.Version, " ")
	stamp := w.world.stamp.Add(1)
	return fmt.Sprint(r.Version, " ", stamp), simtest.Do(ctx, w.Wire, "beat", r.Key, func(context.Context) error {
		w.world.mu.Lock()
		defer w.world.mu.Unlock()
		w.world.beats[r.Term] = append(w.world.beats[r.Term], stamp)
		w.world.tally.Count("beat")
		return nil
	})
}

func (w wire) Version(ctx context.Context, r record.Record) (string, error) {
	return simtest.Call(ctx, w.Wire, "version", r.Key, func(context.Context) (string, error) {
		r.Version, _, _ = strings.Cut(r.Version, " ")
		return w.beaten(r).Version, nil
	})
}

func (w wire) Get(ctx context.Context, region, key string) (record.Record, error) {
	return simtest.Call(ctx, w.Wire, "get", key, func(ctx context.Context) (record.Record, error) {
		if w.lags.Load() {
			return w.beaten(w.lagging(region, key)), nil
		}
		r, err := w.store.Get(ctx, region, key)
		return w.beaten(r), err
	})
}

func (w wire) Put(ctx context.Context, r record.Record) (record.Record, error) {
	return simtest.Call(ctx, w.Wire, "put", r.Key, func(ctx context.Context) (record.Record, error) {
		r.Version, _, _ = strings.Cut(r.Version, " ")
		stored, err := w.store.Put(ctx, r)
		return w.beaten(stored), err
	})
}

func (w wire) Delete(ctx context.Context, r record.Record) error {
	return simtest.Do(ctx, w.Wire, "delete", r.Key, func(ctx context.Context) error { return w.store.Delete(ctx, r) })
}

func (w wire) List(ctx context.Context, region string) ([]record.Record, error) {
	return simtest.Call(ctx, w.Wire, "list", "", func(ctx context.Context) ([]record.Record, error) { return w.store.List(ctx, region) })
}

// node is a process: a worker for each key takes its lock, writes under it and releases it.
type node struct {
	*world
	name     string
	ttl      time.Duration
	wire     *simtest.Wire
	provider *record.Provider
	keeper   *lock.Keeper
	life     context.Context
	die      context.CancelFunc
	lags     atomic.Bool   // it reads what was replaced
	let      chan struct{} // holds one who gives leases back; a second one would wait within sync.Once

	mu   sync.Mutex
	dead bool
	hold time.Duration
	has  map[string]*hold
}

// hold is a lease of a process.
type hold struct {
	node  *node
	lease *lock.Lease
	grant lock.Grant
}

func (h *hold) trusted() bool { return !h.node.isDead() && h.lease.Context().Err() == nil }

func (m *simulation) start(name string, seed uint64) *node {
	n := &node{
		world: m.world, name: name, ttl: m.ttl, hold: 5 * m.ttl, wire: simtest.NewWire(name, seed, m.world.journal),
		let: make(chan struct{}, 1), has: make(map[string]*hold),
	}
	n.life, n.die = context.WithCancel(context.Background())
	reached := wire{m.world.store, n.wire, &n.lags, m.world}
	o := record.Options{Records: reached, Capabilities: lock.Capabilities{Name: "sim"}, Numbered: m.world.store.numbered}
	if m.world.beats != nil {
		o.Beats = reached
	}
	n.provider = record.New(o)
	n.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: n.provider})
	for i, key := range simKeys {
		offset := time.Duration(17*seed+uint64(i)+1) * 137 * time.Microsecond
		n.work.Go(func() {
			for n.sleep(n.life, offset+n.ttl/7) {
				n.compete(key)
			}
		})
	}
	return n
}

func (n *node) isDead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead
}

func (n *node) holdFor() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hold
}

func (n *node) note(key string, h *hold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.has[key] = h
}

func (n *node) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (n *node) compete(key string) {
	l, err := n.keeper.Acquire(n.life, lock.Request{Key: key, Region: "DEFAULT", TTL: n.ttl, Node: n.name})
	if err != nil {
		return
	}
	h := &hold{node: n, lease: l, grant: l.Grant()}
	n.world.mu.Lock()
	n.holds[h.grant.Term] = h
	if n.terms[fmt.Sprint(key, h.grant.Fence)] != h.grant.Term {
		n.brokenLocked("grant has the fence of another term")
	}
	n.world.mu.Unlock()
	n.note(key, h)
	for n.sleep(l.Context(), n.ttl/5) && time.Since(h.grant.Began) < n.holdFor() {
		h.write()
	}
	if cause := context.Cause(l.Context()); errors.Is(cause, lock.ErrLost) && !n.isDead() {
		n.world.mu.Lock()
		n.lost++
		n.world.mu.Unlock()
		n.tally.Count("lease lost")
	}
	n.note(key, nil)
	n.release(l)
}

func (n *node) release(l *lock.Lease) {
	n.let <- struct{}{}
	defer func() { <-n.let }()
	_ = l.Release(context.Background()) // which may fail
}

// write is a fenced write: the resource refuses a fence that is less than one it has seen.
func (h *hold) write() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = simtest.Do(ctx, h.node.wire, "write", h.grant.Key, func(context.Context) error {
		w := h.node.world
		w.mu.Lock()
		defer w.mu.Unlock()
		if h.grant.Fence >= w.writes[h.grant.Key] {
			w.writes[h.grant.Key] = h.grant.Fence
			w.tally.Count("write accepted")
			return nil
		}
		w.tally.Count("stale write refused")
		if h.trusted() && !w.stolen[h.grant.Term] {
			w.brokenLocked("write of a holder that trusts its lease is stale")
		}
		return lock.ErrFenced
	})
}

func (n *node) kill() {
	n.mu.Lock()
	n.dead = true
	n.mu.Unlock()
	n.wire.Kill()
	n.die()
	n.work.Go(func() {
		n.let <- struct{}{}
		defer func() { <-n.let }()
		_ = n.keeper.Close(context.Background())
	})
}

// simulation is the state machine.
type simulation struct {
	world *world
	ttl   time.Duration
	nodes []*node
	gone  []*node
}

func (m *simulation) node(t *rapid.T) *node { return rapid.SampledFrom(m.nodes).Draw(t, "node") }

func (m *simulation) check(t *rapid.T) {
	synctest.Wait()
	for _, n := range m.nodes {
		if call := n.wire.Endless(); call != "" {
			t.Fatalf("%s was called without a deadline", call)
		}
	}
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	if m.world.wrong != "" {
		t.Logf("what happened:\n%s", m.world.journal)
		t.Fatal(m.world.wrong)
	}
}

func (m *simulation) fault(t *rapid.T) {
	call := rapid.SampledFrom([]string{"put", "put", "put", "get", "get", "delete", "write", "beat", "version"}).Draw(t, "call")
	faults := rapid.SliceOfN(simtest.Faults(2*m.ttl), 1, 3).Draw(t, "faults")
	m.node(t).wire.Arm(call, rapid.SampledFrom([]int{1, 20}).Draw(t, "times"), faults...)
}

func (m *simulation) cut(t *rapid.T)    { m.node(t).wire.Cut() }
func (m *simulation) lag(t *rapid.T)    { m.node(t).lags.Store(true) }
func (m *simulation) pause(t *rapid.T)  { m.node(t).wire.Pause() }
func (m *simulation) resume(t *rapid.T) { m.node(t).wire.Resume() }
func (m *simulation) pass(t *rapid.T)   { time.Sleep(simtest.Durations(2*m.ttl).Draw(t, "time")) }

func (m *simulation) reconnect(t *rapid.T) {
	n := m.node(t)
	n.wire.Heal()
	n.lags.Store(false)
}

func (m *simulation) restart(t *rapid.T) {
	i := rapid.IntRange(0, len(m.nodes)-1).Draw(t, "node")
	m.nodes[i].kill()
	m.gone = append(m.gone, m.nodes[i])
	m.nodes[i] = m.start(m.nodes[i].name, uint64(100*len(m.gone)+i))
}

// steal has a process take a lock that it has found, and release it at once.
func (m *simulation) steal(t *rapid.T) {
	n, key := m.node(t), rapid.SampledFrom(simKeys).Draw(t, "key")
	n.work.Go(func() {
		ctx, cancel := context.WithTimeout(n.life, 10*time.Second)
		defer cancel()
		found, err := n.provider.Find(ctx, lock.Query{Region: "DEFAULT", Key: key, Limit: 1})
		if err != nil || len(found) == 0 {
			return
		}
		n.world.mu.Lock()
		n.stolen[found[0].Term] = true
		n.world.mu.Unlock()
		if l, err := n.keeper.Steal(n.life, lock.Request{Key: key, Region: "DEFAULT", TTL: n.ttl, Node: n.name}, found[0], lock.By{}); err == nil {
			n.tally.Count("stolen")
			n.release(l)
		}
	})
}

// heal ends all faults: each lock finds a holder, which keeps it.
func (m *simulation) heal(t *rapid.T) {
	for _, n := range m.nodes {
		n.wire.Heal()
		n.lags.Store(false)
		n.wire.Resume()
		n.mu.Lock()
		n.hold = 24 * time.Hour
		n.mu.Unlock()
	}
	time.Sleep(8*m.ttl + 10*time.Second) // what is orphaned comes, lives for a TTL, and is seen for one
	m.check(t)
	lost, holders := m.world.losses(), 0
	for _, n := range m.nodes {
		n.mu.Lock()
		for _, key := range simKeys {
			if h := n.has[key]; h != nil && h.lease.Context().Err() == nil {
				holders++
			}
		}
		n.mu.Unlock()
	}
	if holders != len(simKeys) {
		t.Logf("what happened:\n%s", m.world.journal)
		t.Fatalf("%d holders of %d locks after the faults", holders, len(simKeys))
	}
	time.Sleep(3 * m.ttl)
	m.check(t)
	if m.world.losses() != lost {
		t.Fatal("lease lost after the faults")
	}
}

func (w *world) losses() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

func (m *simulation) end() {
	for _, n := range m.nodes {
		n.kill()
	}
	m.world.work.Wait()
	for _, n := range append(m.gone, m.nodes...) {
		n.wire.Settle()
	}
}
