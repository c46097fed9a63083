package schedule_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/systemd/watchdog"
	"github.com/observerd/observerd/internal/turn"
)

const interval = 30 * time.Second

// poll is what a fake observer does; nil takes a millisecond and succeeds.
type poll func(ctx context.Context, g lock.Grant) (observer.Stats, error)

// stream is a fake observer that counts its polls.
type stream struct {
	id string
	do poll
	// recovered reports whether the cause of the last failure is gone; nil: it is not.
	recovered func() bool
	// waits is how long the next poll waits for others before it begins; nil: not at all.
	waits func() time.Duration

	mu                   sync.Mutex
	at                   []time.Time
	running, most, begun int
}

func (s *stream) ID() string { return s.id }

func (s *stream) Begin(ctx context.Context) (begun context.Context, end func(), err error) {
	if s.waits != nil {
		select {
		case <-ctx.Done():
			return ctx, func() {}, context.Cause(ctx)
		case <-time.After(s.waits()):
		}
	}
	s.count(1)
	return ctx, func() { s.count(-1) }, nil
}

// count counts the polls that have begun and not ended.
func (s *stream) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun += n
}

func (s *stream) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	s.enter(1)
	defer s.enter(-1)
	if s.do != nil {
		return s.do(ctx, g)
	}
	return after(time.Millisecond)(ctx, g)
}

func (s *stream) enter(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running += n; n > 0 {
		s.at = append(s.at, time.Now())
	}
	s.most = max(s.most, s.running)
}

func (s *stream) polls() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.at...)
}

// after is a poll that succeeds after that time.
func after(d time.Duration) poll {
	return func(ctx context.Context, _ lock.Grant) (observer.Stats, error) {
		select {
		case <-ctx.Done():
			return observer.Stats{}, context.Cause(ctx)
		case <-time.After(d):
			return observer.Stats{Rows: 3, Events: 2, Poison: 1, HorizonLag: time.Second}, nil
		}
	}
}

// fails is a poll that fails with the error.
func fails(err error) poll {
	return func(context.Context, lock.Grant) (observer.Stats, error) { return observer.Stats{}, err }
}

// log is a buffer of log lines.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// count returns the number of lines that contain all of the words.
func (l *log) count(words ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.buf.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		n++
	}
	return n
}

// node is one process of a cluster.
type node struct {
	name    string
	boot    string
	db      *wire
	keeper  *lock.Keeper
	sched   *schedule.Scheduler
	streams map[string]*stream
	reg     *prometheus.Registry
	log     *log
	loops   *watchdog.Loops
	quit    func()
}

// setup changes the options of a node before it is made.
type setup func(o *schedule.Options)

// does replaces what the observer of that id does.
func does(id string, do poll) setup {
	return func(o *schedule.Options) {
		for _, typ := range o.Types {
			for _, s := range typ.Observers {
				if s.ID() == id {
					s.(*stream).do = do
				}
			}
		}
	}
}

// every sets the interval of all types.
func every(d time.Duration) setup {
	return func(o *schedule.Options) {
		for i := range o.Types {
			o.Types[i].Interval = d
		}
	}
}

// observers gives the type observers of these ids.
func observers(typ string, ids ...string) setup {
	return func(o *schedule.Options) {
		for i := range o.Types {
			if o.Types[i].Name != typ {
				continue
			}
			o.Types[i].Observers = nil
			for _, id := range ids {
				o.Types[i].Observers = append(o.Types[i].Observers, &stream{id: id})
			}
		}
	}
}

// only leaves the node these types.
func only(names ...string) setup {
	return func(o *schedule.Options) {
		var types []schedule.Type
		for _, typ := range o.Types {
			for _, name := range names {
				if typ.Name == name {
					types = append(types, typ)
				}
			}
		}
		o.Types = types
	}
}

func request(typ, node string) lock.Request {
	return lock.Request{
		Key: typ + "-observer-poll", Region: "DEFAULT", TTL: time.Minute, Name: typ + "-observer-poll", Node: node,
	}
}

// newNode makes a node with the three types, each with one observer "T-1".
func newNode(t *testing.T, db *memory, name string, setups ...setup) *node {
	t.Helper()
	n := &node{
		name: name, boot: uuid.NewString(), db: &wire{memory: db}, streams: make(map[string]*stream),
		reg: prometheus.NewRegistry(), log: new(log), loops: new(watchdog.Loops),
	}
	n.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: n.db})
	o := schedule.Options{
		Node:   turn.Node{BootID: n.boot, Name: name, StartedAt: time.Now()},
		Keeper: n.keeper, Store: n.db, Enabled: true, Registerer: n.reg, Beat: n.loops.Beat,
		Logger: slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, typ := range []string{"wes", "order", "inventory"} {
		o.Types = append(o.Types, schedule.Type{
			Name: typ, Interval: interval, Request: request(typ, name), Wait: time.Second,
			Observers: []schedule.Observer{&stream{id: typ + "-1"}},
		})
	}
	for _, change := range setups {
		change(&o)
	}
	for _, typ := range o.Types {
		for _, s := range typ.Observers {
			n.streams[s.ID()] = s.(*stream)
		}
	}
	n.sched = schedule.New(o)
	n.quit = sync.OnceFunc(func() { n.stop(t) })
	return n
}

// start starts a node that is stopped at the end of the story, if not before.
func start(t *testing.T, db *memory, name string, setups ...setup) *node {
	t.Helper()
	n := newNode(t, db, name, setups...)
	if err := n.sched.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.quit)
	return n
}

func (n *node) stop(t *testing.T) {
	if err := n.sched.Stop(context.Background()); err != nil && n.db.err() == nil {
		t.Errorf("stop %s: %v", n.name, err)
	}
	if err := n.keeper.Close(context.Background()); err != nil && n.db.err() == nil {
		t.Errorf("close the keeper of %s: %v", n.name, err)
	}
	if t.Failed() && testing.Verbose() {
		t.Logf("log of %s:\n%s", n.name, n.log.buf.String())
	}
}

// crash ends the node without a word to the database.
func (n *node) crash() {
	n.db.breaks()
	n.quit()
}

// polls returns how often the node has polled the observer.
func (n *node) polls(id string) int { return len(n.streams[id].polls()) }

// metric returns a metric's value, such as "name{type=order}", or the count
// of a histogram.
func (n *node) metric(t *testing.T, name string) float64 {
	t.Helper()
	families, err := n.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			full := family.GetName()
			if len(labels) > 0 {
				full += fmt.Sprintf("{%s}", strings.Join(labels, ","))
			}
			if full == name {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// story runs a test in fake time, from a tick of all intervals.
func story(t *testing.T, f func(t *testing.T, db *memory)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newMemory()) })
}

// pass lets time pass and everything come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// equal fails the test when a fact is not as it should be.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
