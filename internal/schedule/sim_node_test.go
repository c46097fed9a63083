package schedule_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/test/kit/simtest"
)

// simNode is one process of the cluster.
type simNode struct {
	world    *simWorld
	name     string
	boot     string
	interval time.Duration
	types    []string
	// observers are the streams of each type.
	observers map[string][]string
	wire      *simtest.Wire
	news      *simNews
	keeper    *lock.Keeper
	sched     *schedule.Scheduler

	mu    sync.Mutex
	dead  bool
	moods map[string]simMood // of polls, by stream
}

// simPlan is what a node is started with.
type simPlan struct {
	Name     string
	Types    []string
	Interval time.Duration
	// Informed says that the node hears of others' deaths.
	Informed bool
}

// simRare is polled in one turn of so many.
const (
	simRare   = "inventory-2"
	simRarity = 3
)

// simTTL is shorter than that of real use, so that a lease may end within an
// interval or two.
const simTTL = 15 * time.Second

// longestStop is what a node that is connected may need to stop: its longest
// calls are those that a fault makes deaf to their contexts.
const longestStop = 4*simTTL + time.Minute

func startSimNode(w *simWorld, p simPlan, number int) (*simNode, error) {
	n := &simNode{
		world: w, name: p.Name, boot: fmt.Sprintf("boot-%03d", number), interval: p.Interval, types: p.Types,
		observers: make(map[string][]string), wire: simtest.NewWire(p.Name, uint64(number), w.journal),
		news: newSimNews(p.Informed), moods: make(map[string]simMood),
	}
	store := &simStore{node: n, db: w.db, wire: n.wire}
	n.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: store})
	o := schedule.Options{
		Node:   turn.Node{BootID: n.boot, Name: n.name, StartedAt: time.Now()},
		Keeper: n.keeper, Store: store, Liveness: n.news, Enabled: true, ShutdownTimeout: time.Hour,
	}
	for i, typ := range p.Types {
		r := request(typ, n.name)
		r.TTL = simTTL
		t := schedule.Type{Name: typ, Interval: p.Interval, Request: r, PollTimeout: time.Minute}
		for k := range 1 + i%2 {
			id := fmt.Sprintf("%s-%d", typ, k+1)
			n.observers[typ] = append(n.observers[typ], id)
			t.Observers = append(t.Observers, &simStream{node: n, id: id})
		}
		t.Timings = map[string]schedule.Timing{simRare: {Delay: simRarity * p.Interval}}
		o.Types = append(o.Types, t)
	}
	n.sched = schedule.New(o)
	w.mu.Lock()
	w.nodes = append(w.nodes, n)
	w.mu.Unlock()
	w.journal.Note(n.name, fmt.Sprintf("starts, polls %v every %s", n.types, n.interval))
	return n, n.sched.Start(context.Background())
}

// leave ends the process in order.
func (n *simNode) leave() {
	n.wire.Heal()
	n.wire.Resume()
	n.world.journal.Note(n.name, "is stopped")
	n.world.work.Go(func() {
		began := time.Now()
		n.end() // errors are what the database did not answer to
		if time.Since(began) > longestStop {
			n.world.broken("node stops in %s", time.Since(began))
		}
	})
}

// kill ends the process without a word. Those who look after each other find
// out a second later, unless it is the wire between that is broken.
func (n *simNode) kill() {
	n.mu.Lock()
	n.dead = true
	n.mu.Unlock()
	n.wire.Kill()
	n.world.work.Go(n.end)
}

// end joins what runs in the process.
func (n *simNode) end() {
	_ = n.sched.Stop(context.Background())
	_ = n.keeper.Close(context.Background())
}

func (n *simNode) killed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead
}

func (n *simNode) polls(typ string) bool { return len(n.observers[typ]) > 0 }

// simNews is what a node knows of others' deaths.
type simNews struct {
	informed bool

	mu   sync.Mutex
	gone map[string]bool
	wake chan struct{}
}

func newSimNews(informed bool) *simNews {
	return &simNews{informed: informed, gone: make(map[string]bool), wake: make(chan struct{})}
}

func (s *simNews) Gone(bootID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.informed && s.gone[bootID]
}

func (s *simNews) Freed(lock.Request) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.informed {
		return nil
	}
	return s.wake
}

// tell brings the news that the nodes are dead, or none but that of a lock.
func (s *simNews) tell(boots ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, boot := range boots {
		s.gone[boot] = true
	}
	close(s.wake)
	s.wake = make(chan struct{})
}

// recant takes back that the node is dead.
func (s *simNews) recant(boot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gone, boot)
}
