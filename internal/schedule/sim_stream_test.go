package schedule_test

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/simtest"
)

// simReading is how long a poll reads that goes well, so that most of what
// happens in a turn happens within a poll.
const simReading = time.Second

// simMood is how polls of a stream go on a node. The zero value: well.
type simMood struct {
	err  error
	lags time.Duration
}

var errSick = errors.New("table is gone")

// simPollTime is less than the time after which the scheduler ends a poll that gets
// nowhere.
const simPollTime = 50 * time.Second

// simStream is an observer of one node.
type simStream struct {
	node *simNode
	id   string
}

// simPoll is a poll that is under way.
type simPoll struct {
	stream *simStream
	ctx    context.Context
	grant  lock.Grant
}

func (s *simStream) ID() string { return s.id }

// Poll reads for a while and then commits under the grant, within a time of its own.
func (s *simStream) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, simPollTime)
	defer cancel()
	p := &simPoll{stream: s, ctx: ctx, grant: g}
	s.node.world.begin(p)
	defer s.node.world.end(p)
	mood := s.node.mood(s.id)
	if mood.err != nil {
		if errors.Is(mood.err, observer.ErrUnreachable) {
			s.node.world.db.set(func(*memory) { s.node.world.unreached = time.Now() })
		}
		return observer.Stats{}, mood.err
	}
	err := simtest.Do(ctx, s.node.wire, "poll", s.id, func(context.Context) error { return nil })
	if err != nil {
		return observer.Stats{}, err
	}
	select {
	case <-ctx.Done():
		return observer.Stats{}, context.Cause(ctx)
	case <-time.After(simReading + mood.lags):
	}
	return observer.Stats{}, simtest.Do(ctx, s.node.wire, "commit", s.id, func(context.Context) error {
		return s.node.world.write(g, func() error {
			s.node.world.commit(s.id, g)
			return nil
		})
	})
}

func (n *simNode) mood(stream string) simMood {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.moods[stream]
}

func (n *simNode) feel(stream string, m simMood) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.moods[stream] = m
}

func (n *simNode) feelWell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.moods)
}

// begin judges the beginning of a poll: nobody else polls the stream and trusts
// its lease, unless one of the two ended before its time.
func (w *simWorld) begin(p *simPoll) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.Count("poll")
	for other := range w.polls {
		if other.stream.id != p.stream.id || !other.trusts() || !p.trusts() {
			continue
		}
		if w.stolen[other.grant.Term] || w.stolen[p.grant.Term] {
			w.tally.Count("polls overlap after a theft")
			continue
		}
		w.brokenLocked("two polls of %s at a time", p.stream.id)
	}
	w.polls[p] = true
}

// trusts reports whether whoever polls still takes itself for the holder. A node
// that slept beyond its lease begins a poll that has ended already.
func (p *simPoll) trusts() bool { return p.ctx.Err() == nil && !p.stream.node.killed() }

func (w *simWorld) commit(stream string, g lock.Grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.committed[stream] = g.Term
}

func (w *simWorld) end(p *simPoll) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.polls, p)
}
