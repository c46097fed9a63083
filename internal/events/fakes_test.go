package events_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

var (
	errDown    = errors.New("connection refused")
	errBroken  = errors.New("disk full")
	errExpired = errors.New("lease was lost")
)

// fakeLog is an event log in memory. Its hooks see each call and may fail it;
// an error of after is returned though the call was carried out.
type fakeLog struct {
	mu            sync.Mutex
	streams       map[string][]events.Event
	offsets       map[string]int64
	epoch         int64
	before, after func(call string) error
	calls         map[string]int
	// noted are the states of the sink that were noted, each once in a row.
	noted []string
}

func newFakeLog() *fakeLog {
	return &fakeLog{streams: map[string][]events.Event{}, offsets: map[string]int64{}, calls: map[string]int{}}
}

// add appends events with the given sequences to the stream.
func (l *fakeLog) add(stream string, seqs ...int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seq := range seqs {
		l.streams[stream] = append(l.streams[stream], event(stream, seq))
	}
}

func event(stream string, seq int64) events.Event {
	return events.Event{ID: events.NewID(stream, 0, "key", seq, nil), Stream: stream, Seq: seq, Observed: time.Now()}
}

func upTo(n int64) (seqs []int64) {
	for seq := int64(1); seq <= n; seq++ {
		seqs = append(seqs, seq)
	}
	return seqs
}

func (l *fakeLog) fail(before, after func(call string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.after = before, after
}

func (l *fakeLog) offset(stream string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offsets[stream]
}

func (l *fakeLog) setOffset(stream string, seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offsets[stream] = seq
}

func (l *fakeLog) setEpoch(epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch = epoch
}

func (l *fakeLog) epochNow() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

func (l *fakeLog) count(call string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[call]
}

// call runs do under the mutex, between the hooks.
func (l *fakeLog) call(ctx context.Context, name string, do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[name]++
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.before != nil {
		if err := l.before(name); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if l.after != nil {
		return l.after(name)
	}
	return nil
}

func (l *fakeLog) Backlog(ctx context.Context, _ string) (backlog []events.Backlog, err error) {
	err = l.call(ctx, "backlog", func() error {
		for stream, log := range l.streams {
			last := log[len(log)-1].Seq
			if acknowledged := l.offsets[stream]; last > acknowledged {
				b := events.Backlog{Stream: stream, Acknowledged: acknowledged, Last: last, Now: time.Now()}
				if i := slices.IndexFunc(log, func(e events.Event) bool { return e.Seq > acknowledged }); i >= 0 {
					b.Oldest = log[i].Observed
				}
				backlog = append(backlog, b)
			}
		}
		slices.SortFunc(backlog, func(a, b events.Backlog) int {
			if a.Stream < b.Stream {
				return -1
			}
			return 1
		})
		return nil
	})
	return backlog, err
}

func (l *fakeLog) Read(ctx context.Context, stream string, after int64, limit int) (batch []events.Event, err error) {
	err = l.call(ctx, "read", func() error {
		for _, e := range l.streams[stream] {
			if e.Seq > after && len(batch) < limit {
				batch = append(batch, e)
			}
		}
		return nil
	})
	return batch, err
}

func (l *fakeLog) Claim(ctx context.Context, _ string, epoch int64) error {
	return l.call(ctx, "claim", func() error {
		l.epoch = max(l.epoch, epoch)
		return nil
	})
}

func (l *fakeLog) Acknowledge(ctx context.Context, _ string, stored events.Stored, epoch int64) error {
	return l.call(ctx, "acknowledge", func() error {
		stream := stored.Stream()
		switch at := l.offsets[stream]; {
		case epoch != l.epoch:
			return events.ErrStale
		case at != stored.After && at != stored.Last() || !holdsAll(l.streams[stream], stored.Events):
			return events.ErrLogChanged
		}
		l.offsets[stream] = stored.Last()
		return nil
	})
}

// Failed keeps what was noted, without a part in the faults of the other calls.
func (l *fakeLog) Failed(_ context.Context, _, reason string, _ int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.noted) == 0 || l.noted[len(l.noted)-1] != reason {
		l.noted = append(l.noted, reason)
	}
	return nil
}

// holdsAll reports whether a stream holds these events, each with its sequence and id.
func holdsAll(stream, some []events.Event) bool {
	ids := make(map[int64]uuid.UUID)
	for _, e := range stream {
		ids[e.Seq] = e.ID
	}
	return !slices.ContainsFunc(some, func(e events.Event) bool { return ids[e.Seq] != e.ID })
}

// goBack takes the last events off a stream, and puts others in the place of
// those but the last: what a failover to a standby that lags leaves of a log.
func (l *fakeLog) goBack(stream string, offset int64, others ...events.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams[stream] = slices.DeleteFunc(l.streams[stream], func(e events.Event) bool { return e.Seq >= others[0].Seq })
	l.streams[stream] = append(l.streams[stream], others...)
	l.offsets[stream] = offset
}

// fakeSink keeps what it is given. deliver, if set, decides how much it stores.
type fakeSink struct {
	mu      sync.Mutex
	stored  []events.Event
	seen    map[uuid.UUID]bool
	refuses bool // repeats, which then count as stored
	deliver func(ctx context.Context, batch []events.Event) (int, error)
	batches int
	closed  int
}

func (s *fakeSink) Deliver(ctx context.Context, batch []events.Event) (int, error) {
	s.mu.Lock()
	s.batches++
	deliver := s.deliver
	s.mu.Unlock()
	n, err := len(batch), error(nil)
	if deliver != nil {
		n, err = deliver(ctx, batch)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[uuid.UUID]bool{}
	}
	for _, e := range batch[:min(max(n, 0), len(batch))] {
		if !s.refuses || !s.seen[e.ID] {
			s.stored = append(s.stored, e)
		}
		s.seen[e.ID] = true
	}
	return n, err
}

func (s *fakeSink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

func (s *fakeSink) behave(deliver func(ctx context.Context, batch []events.Event) (int, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliver = deliver
}

// seqs returns the sequences that were stored of a stream, in order of arrival.
func (s *fakeSink) seqs(stream string) (seqs []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.stored {
		if e.Stream == stream {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

func (s *fakeSink) has(id uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[id]
}

// fakeLease ends when lose is called.
type fakeLease struct {
	ctx      context.Context
	lose     context.CancelCauseFunc
	fence    int64
	released func(error)
}

func (l *fakeLease) Context() context.Context { return l.ctx }
func (l *fakeLease) Fence() int64             { return l.fence }
func (l *fakeLease) Release(ctx context.Context) error {
	l.released(ctx.Err())
	l.lose(errExpired)
	return nil
}

// fakeLock grants one lease at a time, with growing fences.
type fakeLock struct {
	mu       sync.Mutex
	held     *fakeLease
	fence    int64
	attempts int
	fail     error
	// releases are the errors of the contexts that leases were released with.
	releases []error
}

func (l *fakeLock) Lead(ctx context.Context) (events.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	if l.fail != nil {
		return nil, l.fail
	}
	if l.held != nil {
		return nil, events.ErrHeld
	}
	l.fence++
	lease := &fakeLease{fence: l.fence}
	// Like a real one: detached from the caller, or a release would be the
	// loss of the lease.
	lease.ctx, lease.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	lease.released = func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.releases = append(l.releases, err)
		if l.held == lease {
			l.held = nil
		}
	}
	l.held = lease
	return lease, nil
}

// expire takes the lease away from its holder. When taken, nobody gets it
// until free is called.
func (l *fakeLock) expire(taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil && l.held.lose != nil {
		l.held.lose(errExpired)
	}
	l.held = nil
	if taken {
		l.fence++
		l.held = &fakeLease{}
	}
}

func (l *fakeLock) refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

func (l *fakeLock) tries() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempts
}
