package relay_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/relay"
	"github.com/observerd/observerd/test/kit/simtest"
)

// simTTL is the TTL of the sink's lease, simBatch the size of a batch.
const (
	simTTL   = 15 * time.Second
	simBatch = 5
)

// simRelay is the relay of one node, with its keeper and its own way to the
// sink.
type simRelay struct {
	world  *simWorld
	name   string
	wire   *simtest.Wire
	keeper *lock.Keeper
	stop   context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	epoch int64     // of the last lease
	lost  time.Time // when that was lost; zero while it is held
	mood  simMood
	ends  bool // was told to
	sinks []*simSink
	freed chan struct{} // nil: this node is told of nothing
}

func startSimRelay(w *simWorld, name string, number int, informed bool) {
	r := &simRelay{world: w, name: name, done: make(chan struct{})}
	r.wire = simtest.NewWire(name, uint64(number), w.journal)
	r.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: &simLocks{relay: r}})
	if informed {
		r.freed = make(chan struct{})
	}
	relay := relay.New(relay.Options{
		Sink: "screen", Log: &simLogView{world: w, relay: r}, Lead: r.lead, Freed: r.told,
		Open:      r.open,
		Park:      w.parks,
		BatchSize: simBatch, Poll: 2 * time.Second, Timeout: 5 * time.Second, GiveUp: 4,
	})
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	w.mu.Lock()
	w.relays = append(w.relays, r)
	w.mu.Unlock()
	w.journal.Note(name, "starts")
	w.work.Go(func() {
		defer close(r.done)
		relay.Run(ctx)
	})
}

// lead takes the sink's lease, as the daemon does.
func (r *simRelay) lead(ctx context.Context) (relay.Lease, error) {
	l, err := r.keeper.Acquire(ctx, lock.Request{Key: "sink", Region: "DEFAULT", TTL: simTTL, Node: r.name})
	if errors.Is(err, lock.ErrHeld) {
		return nil, relay.ErrHeld
	}
	if err != nil {
		return nil, err
	}
	r.world.tally.Count("term")
	r.world.blame()
	r.mu.Lock()
	r.epoch, r.lost = l.Fence(), time.Time{}
	r.mu.Unlock()
	context.AfterFunc(l.Context(), func() {
		if errors.Is(context.Cause(l.Context()), lock.ErrLost) {
			r.world.tally.Count("lease lost")
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.epoch == l.Fence() {
				r.lost = time.Now()
			}
		}
	})
	return l, nil
}

// lostBefore reports whether the lease was lost before this instant. A relay that
// stops cannot tell, and leaves it to the epoch.
func (r *simRelay) lostBefore() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ends && !r.lost.IsZero() && r.lost.Before(time.Now())
}

func (r *simRelay) feel(m simMood) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mood = m
}

func (r *simRelay) told() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.freed
}

func (r *simRelay) hear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed != nil {
		close(r.freed)
		r.freed = make(chan struct{})
	}
}

// leave ends the relay in order, kill without a word. Either may repeat a batch.
func (r *simRelay) leave() {
	r.world.journal.Note(r.name, "is stopped")
	r.wire.Heal()
	r.wire.Resume()
	r.finish()
}

func (r *simRelay) kill() {
	r.world.blame()
	r.wire.Kill()
	r.finish()
}

func (r *simRelay) finish() {
	r.mu.Lock()
	r.ends = true
	r.mu.Unlock()
	r.stop()
	r.world.work.Go(func() {
		<-r.done
		for _, s := range r.sinks {
			if !s.closed {
				r.world.broken("sink left open")
			}
		}
		_ = r.keeper.Close(context.Background()) // the relay has given its lease back
	})
}

// simLocks grants the sink's lease to one node.
type simLocks struct{ relay *simRelay }

func (p *simLocks) Acquire(ctx context.Context, q lock.Request) (lock.Grant, error) {
	began := time.Now()
	return simtest.Call(ctx, p.relay.wire, "acquire", "", func(ctx context.Context) (lock.Grant, error) {
		g, err := p.relay.world.locks.Acquire(ctx, q)
		g.Began = began
		return g, err
	})
}

func (p *simLocks) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	return simtest.Call(ctx, p.relay.wire, "renew", "", func(ctx context.Context) ([]lock.Renewal, error) {
		return p.relay.world.locks.Renew(ctx, grants)
	})
}

func (*simLocks) Capabilities() lock.Capabilities { return lock.Capabilities{Name: "sim"} }

func (p *simLocks) Release(ctx context.Context, g lock.Grant) error {
	return simtest.Do(ctx, p.relay.wire, "release", "", func(ctx context.Context) error {
		err := p.relay.world.locks.Release(ctx, g)
		p.relay.world.freed()
		return err
	})
}
