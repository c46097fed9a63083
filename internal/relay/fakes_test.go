package relay_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/relay"
	"github.com/observerd/observerd/internal/sink"
)

var (
	errDown    = errors.New("connection refused")
	errBroken  = errors.New("disk full")
	errExpired = errors.New("lease was lost")
)

// fakeLog is an event log in memory. Its hooks see each call and may fail it;
// an error of after is returned though the call was carried out.
type fakeLog struct {
	mu      sync.Mutex
	streams map[string][]events.Event
	offsets map[string]int64
	stored  map[string]events.Position
	adopted map[string]bool
	id      uuid.UUID
	paused  bool
	epoch   int64
	// era is how often the log went back, by which its server is known.
	era           int64
	before, after func(call string) error
	calls         map[string]int
	// noted are the states of the sink that were noted, each once in a row.
	noted  []string
	parked parkedEvents
}

func newFakeLog() *fakeLog {
	return &fakeLog{streams: map[string][]events.Event{}, offsets: map[string]int64{}, stored: map[string]events.Position{}, adopted: map[string]bool{},
		id: uuid.New(), calls: map[string]int{}}
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
			if offset := l.offsets[stream]; last > offset {
				b := events.Backlog{Stream: stream, Offset: offset, Last: last, Now: time.Now(), Paused: l.paused}
				if i := slices.IndexFunc(log, func(e events.Event) bool { return e.Seq > offset }); i >= 0 {
					b.Next, b.Oldest = log[i].Seq, log[i].Observed
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

func (l *fakeLog) Read(ctx context.Context, ranges []events.Range, bytes int) (batch []events.Event, server string, err error) {
	err = l.call(ctx, "read", func() error {
		batch, server = within(l.streams, ranges, bytes), serverOf(l.era)
		return nil
	})
	return batch, server, err
}

func serverOf(era int64) string { return fmt.Sprint("server ", era) }

// within returns the events of the ranges, until their data is as long.
func within(streams map[string][]events.Event, ranges []events.Range, bytes int) (batch []events.Event) {
	for _, r := range ranges {
		for _, e := range streams[r.Stream] {
			if e.Seq > r.After && e.Seq <= r.Last && bytes > 0 {
				batch = append(batch, e)
				bytes -= len(e.Data)
			}
		}
	}
	return batch
}

func (l *fakeLog) Claim(ctx context.Context, _ string, epoch int64) (uuid.UUID, error) {
	return l.id, l.call(ctx, "claim", func() error {
		l.epoch = max(l.epoch, epoch)
		return nil
	})
}

func (l *fakeLog) Move(ctx context.Context, _ string, steps []events.Step, epoch int64) error {
	return l.call(ctx, "acknowledge", func() error {
		for _, step := range steps {
			stream := step.Stream()
			switch at := l.offsets[stream]; {
			case epoch != l.epoch:
				return events.ErrStale
			case at != step.After && at != step.Last() || !stillHas(l.streams[stream], step, l.era):
				return events.ErrLogChanged
			}
			l.offsets[stream] = step.Last()
			l.parked = l.parked.with(step)
			if step.Stored != nil {
				l.stored[stream] = *step.Stored
				delete(l.adopted, stream)
			}
		}
		return nil
	})
}

func (l *fakeLog) Parked(ctx context.Context, _ string) (keys []events.ParkedKey, err error) {
	err = l.call(ctx, "parked", func() error {
		keys = l.parked.keys(l.paused)
		return nil
	})
	return keys, err
}

func (l *fakeLog) Retries(ctx context.Context, _ string, limit, _ int) (batch []events.Event, err error) {
	err = l.call(ctx, "retries", func() error {
		batch = l.parked.retries(l.offsets, limit)
		return nil
	})
	return batch, err
}

func (l *fakeLog) Unpark(ctx context.Context, _ string, delivered []events.Event, _ int64) error {
	return l.call(ctx, "unpark", func() error {
		l.parked = l.parked.without(delivered)
		return nil
	})
}

func (l *fakeLog) Repark(ctx context.Context, _ string, refused events.Event, reason string, _ int64) error {
	return l.call(ctx, "repark", func() error {
		l.parked = l.parked.refused(refused, reason)
		return nil
	})
}

// parkedEvent is a row of the table of parked events.
type parkedEvent struct {
	events.Event
	reason string
	retry  bool
}

// parkedEvents are the parked events of a sink, in the order in which they were parked. A
// copy stays as it is.
type parkedEvents []parkedEvent

func (all parkedEvents) with(step events.Step) parkedEvents {
	all = slices.Clone(all)
	for _, p := range step.Parked {
		at := slices.IndexFunc(step.Events, func(e events.Event) bool { return e.Seq == p.Seq })
		if e := step.Events[at]; !slices.ContainsFunc(all, func(known parkedEvent) bool { return known.ID == e.ID }) {
			all = append(all, parkedEvent{Event: e, reason: p.Reason})
		}
	}
	return all
}

func (all parkedEvents) keys(paused bool) (keys []events.ParkedKey) {
	for _, p := range all {
		at := slices.IndexFunc(keys, func(k events.ParkedKey) bool { return k.Key == p.Key() })
		if at < 0 {
			at, keys = len(keys), append(keys, events.ParkedKey{Key: p.Key(), First: p.Seq, Oldest: p.Observed, Now: time.Now(), Paused: paused})
		}
		keys[at].Events++
		keys[at].First, keys[at].Last = min(keys[at].First, p.Seq), max(keys[at].Last, p.Seq)
		keys[at].Retry = keys[at].Retry || p.retry
	}
	return keys
}

func (all parkedEvents) retries(offsets map[string]int64, limit int) (batch []events.Event) {
	for _, p := range all {
		if p.Seq <= offsets[p.Stream] && slices.ContainsFunc(all, func(o parkedEvent) bool { return o.Key() == p.Key() && o.retry }) {
			batch = append(batch, p.Event)
		}
	}
	slices.SortStableFunc(batch, func(a, b events.Event) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Seq, b.Seq))
	})
	return batch[:min(len(batch), limit)]
}

func (all parkedEvents) without(delivered []events.Event) parkedEvents {
	return slices.DeleteFunc(slices.Clone(all), func(p parkedEvent) bool {
		return slices.ContainsFunc(delivered, func(e events.Event) bool { return e.ID == p.ID })
	})
}

func (all parkedEvents) refused(x events.Event, reason string) parkedEvents {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Key() == x.Key() {
			all[i].retry = false
		}
		if all[i].ID == x.ID {
			all[i].reason = reason
		}
	}
	return all
}

// retry marks all of them, as an operator does.
func (all parkedEvents) retry() parkedEvents {
	all = slices.Clone(all)
	for i := range all {
		all[i].retry = true
	}
	return all
}

func (l *fakeLog) Marks(ctx context.Context, _ string) (marks []events.Mark, err error) {
	err = l.call(ctx, "marks", func() error {
		for _, stream := range slices.Sorted(maps.Keys(l.offsets)) {
			marks = append(marks, events.Mark{Stream: stream, Offset: l.offsets[stream], Stored: l.stored[stream], Adopted: l.adopted[stream]})
		}
		return nil
	})
	return marks, err
}

func (l *fakeLog) Seek(ctx context.Context, _ string, from events.Mark, offset int64, stored events.Position, epoch int64) error {
	return l.call(ctx, "seek", func() error {
		switch {
		case epoch != l.epoch:
			return events.ErrStale
		case l.offsets[from.Stream] != from.Offset:
			return events.ErrLogChanged
		}
		l.offsets[from.Stream], l.stored[from.Stream] = offset, stored
		delete(l.adopted, from.Stream)
		return nil
	})
}

func (l *fakeLog) Holds(ctx context.Context, positions []events.Position) (held, taken []events.Position, err error) {
	err = l.call(ctx, "holds", func() error {
		held, taken = holds(l.streams, positions)
		return nil
	})
	return held, taken, err
}

// holds judges positions by the events of streams.
func holds(streams map[string][]events.Event, positions []events.Position) (held, taken []events.Position) {
	for _, p := range positions {
		log := streams[p.Stream]
		switch i := slices.IndexFunc(log, func(e events.Event) bool { return e.Seq == p.Seq }); {
		case i >= 0 && log[i].ID == p.ID:
			held = append(held, p)
		case i < 0 && len(log) > 0 && log[0].Seq > p.Seq:
			taken = append(taken, p)
		}
	}
	return held, taken
}

func (l *fakeLog) Pause(ctx context.Context, _, _ string, _ int64) error {
	return l.call(ctx, "pause", func() error {
		l.paused = true
		return nil
	})
}

func (*fakeLog) Delivered(context.Context, events.Event) {}

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
// stillHas reports whether the log has what was read of it, as the database finds out.
func stillHas(stream []events.Event, step events.Step, era int64) bool {
	if step.Server == serverOf(era) {
		return holdsAll(stream, step.Events[len(step.Events)-1:])
	}
	return holdsAll(stream, step.Events)
}

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
	l.era++
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
	// rejects are events that it never takes.
	rejects map[uuid.UUID]bool
	batches int
	closed  int
}

func (s *fakeSink) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	s.mu.Lock()
	batch, rejected := s.taken(batch)
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
	switch {
	case n < 0:
		n = 0
	case n > len(batch):
		return sink.StoredAll(append(batch, event("orders", 999))), err
	}
	return sink.Result{Stored: events.Ends(batch[:n], uuid.Nil, nil), Rejected: rejected}, err
}

// taken leaves out of a batch what is rejected, and what comes behind it in its stream.
func (s *fakeSink) taken(batch []events.Event) (part []events.Event, rejected []sink.Rejection) {
	stops := map[string]bool{}
	for _, e := range batch {
		if s.rejects[e.ID] && !stops[e.Stream] {
			stops[e.Stream] = true
			rejected = append(rejected, sink.Rejection{Position: events.Position{Stream: e.Stream, Seq: e.Seq, ID: e.ID}, Reason: "too large"})
		}
		if !stops[e.Stream] {
			part = append(part, e)
		}
	}
	return part, rejected
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

func (l *fakeLock) Lead(ctx context.Context) (relay.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	if l.fail != nil {
		return nil, l.fail
	}
	if l.held != nil {
		return nil, relay.ErrHeld
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
