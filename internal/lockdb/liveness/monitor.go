package liveness

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/wait"
)

// timeout bounds one look, one attempt to be seen, and the farewell.
// After the server was restarted, a node has time for two attempts before
// another node judges it.
const timeout = 2 * time.Second

// Options say how closely nodes watch each other. Durations of 0 mean the defaults.
type Options struct {
	// DB is the coordination database, and BootID the id of this process there. Holds
	// reports whether the process may hold the lease of a term. All are required.
	DB     *sqldb.DB
	BootID string
	Holds  func(term string) bool
	// Active is 1 while others can see this process, else 0. Required.
	Active prometheus.Gauge

	// Regions are those of the pollers' locks. In others, the TTL alone ends a lease.
	Regions []string
	// Every is the time between two looks. 0 means 250 ms: the death of a node
	// is found out so much later than Absence, at most.
	Every time.Duration
	// Absence is how long a node must have been absent, in every look, to count
	// as dead. 0 means 1 s.
	Absence time.Duration
	// Age is how old our own session must be before it judges: after a restart
	// of the server all sessions are gone, and come back one after the other.
	// 0 means 5 s. It plays no part on SQLite.
	Age time.Duration
	// Patience is how long a node that cannot be seen gives signs of life
	// instead, before it lets its leases live by their TTL alone. 0 means 30 s.
	Patience time.Duration
	// SignOfLife renews all leases of this node at once and does not wait; see
	// [lock.Keeper]. Nil does nothing.
	SignOfLife func()
	// Logger is required. Beat is told that the loop is alive; nil is told
	// nothing.
	Logger *slog.Logger
	Beat   func(loop string, within time.Duration)
}

func (o *Options) setDefaults() {
	o.Every = cmp.Or(o.Every, 250*time.Millisecond)
	o.Absence = cmp.Or(o.Absence, absence)
	o.Age = cmp.Or(o.Age, 5*time.Second)
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	if o.SignOfLife == nil {
		o.SignOfLife = func() {}
	}
	if o.Beat == nil {
		o.Beat = func(string, time.Duration) {}
	}
}

// Monitor shows that this process lives, watches the others, and takes the
// leases of the dead from them, so that no node waits for their TTL. The fence makes
// that safe: a node that was judged wrongly loses its lease, and its commits are
// refused.
//
//	           ┌────────── error ───────────┐
//	           v                            │
//	start ─> appear ─ seen by others ─> look, judge, free ─┐
//	           │ ^                          ^              │
//	           │ └─ again, with signs of    └── every ─────┘
//	           │    life in between
//	           └─ a pooler in transaction mode: switched off for good
type Monitor struct {
	db   *sqldb.DB
	sql  *sqldb.Statements[presenceSQL]
	opts Options
	p    Presence

	members
	// shown is the value of the columns liveness for this process.
	shown atomic.Value

	detector detector
	appeared time.Time // when others could see us again
	lost     time.Time // when they could not any more
	unseen   wait.Outage
	unfreed  wait.Outage // while a lease without a holder cannot be freed
	// judged says that rows of ours may let others judge us: while they cannot
	// see us, signs of life have to stand in.
	judged   bool
	pace     time.Duration // of the looks, if it is slower than usual
	short    int           // sessions in a row that did not last
	relooked bool          // at the catalogue, and no look has succeeded since
	settled  chan struct{}
	settle   func()

	cancel context.CancelFunc
	work   sync.WaitGroup
	mu     sync.Mutex
	ended  bool
}

// New returns the monitor of this process, which shows itself by that presence. It
// does nothing until [Monitor.Start].
func New(p Presence, o Options) *Monitor {
	o.setDefaults()
	m := &Monitor{db: o.DB, sql: newPresenceSQL(o.DB), opts: o, p: p, cancel: func() {}, settled: make(chan struct{})}
	m.settle = sync.OnceFunc(func() { close(m.settled) })
	m.detector = detector{absence: o.Absence, gap: 2 * (o.Every + o.Absence)}
	return m
}

// Start begins to show this process and to watch the others, in the
// background. The schema must be up to date. After Stop it does nothing.
//
// The channel is closed when the first attempt has ended, well or badly, which
// takes little time. Leases that are acquired before that are noted as having a
// holder that cannot be seen, until the next look.
func (m *Monitor) Start(ctx context.Context) (settled <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		m.settle()
		return m.settled
	}
	ctx, m.cancel = context.WithCancel(ctx)
	m.work.Go(func() { m.run(ctx) })
	return m.settled
}

// Stop ends it and gives everything back. On PostgreSQL, a process that still holds
// leases then counts as dead; beside SQLite those live by their TTL, as the file
// is gone. Stop it after they were released. It may be called twice, and before
// Start. The error is that of ctx, when something hangs in the kernel.
func (m *Monitor) Stop(ctx context.Context) error {
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.cancel()
	return wait.Group(ctx, &m.work, "the liveness of this node")
}

// ShownBy is the value of the columns liveness for this process: how others see
// whether it lives. It is empty while they cannot.
func (m *Monitor) ShownBy() string {
	kind, _ := m.shown.Load().(string)
	return kind
}
