package relay

import (
	"cmp"
	"slices"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

// pending is a stream of a [plan]: what is left to be read of it.
type pending struct {
	stream string
	// offset is where the sink's offset is once what was read is stored; next is the
	// sequence that must come then, which only of a sink's first event is not offset + 1.
	offset, next, last int64
}

// plan is a queue of streams with a backlog. Those at the front are read first.
type plan struct {
	queue []pending
	// size is how many events a batch has at most, streams of how many streams; 0: of as
	// many as there are.
	size, streams int
}

// ranges returns what to read for a batch. The streams at the front share it evenly; what
// one of them does not need is there for the others.
func (p *plan) ranges() []events.Range {
	n := min(len(p.queue), p.size)
	if p.streams > 0 {
		n = min(n, p.streams)
	}
	if n == 0 {
		return nil
	}
	ranges, left := make([]events.Range, n), p.size
	for i, s := range p.queue[:n] {
		take := min(s.last-s.next+1, int64(p.size/n))
		ranges[i] = events.Range{Stream: s.stream, After: s.next - 1, Last: s.next - 1 + take}
		left -= int(take)
	}
	for i, s := range p.queue[:n] {
		more := min(s.last-ranges[i].Last, int64(left))
		ranges[i].Last += more
		left -= int(more)
	}
	return ranges
}

// part is what a batch has of one stream.
type part struct {
	// after is the offset behind which the events were read, server that of [events.Step].
	after  int64
	server string
	events []events.Event
	// wanted are those of them that the sink is given, and parked those that are parked.
	wanted, parked []events.Event
}

// read takes what was read of the ranges out of the plan, and returns it stream by stream,
// each up to its first gap. A stream of which more is left goes to the end of the queue.
// One of which nothing was read, or that has a gap, is left to the next look at the
// backlog, unless the read may have ended before it.
func (p *plan) read(batch []events.Event, server string, wanted func(*events.Event) bool) (parts []part) {
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].Stream == batch[0].Stream {
			n++
		}
		at := slices.IndexFunc(p.queue, func(s pending) bool { return s.stream == batch[0].Stream })
		if at < 0 {
			break // No log answers so.
		}
		s, whole := p.queue[at], batch[:n]
		p.queue, batch = p.queue[at+1:], batch[n:]
		found := gapless(whole, s.next)
		if len(found) == 0 {
			continue
		}
		parts = append(parts, newPart(s.offset, found, server, wanted))
		s.offset = found[len(found)-1].Seq
		s.next = s.offset + 1
		if len(found) == len(whole) && s.offset < s.last {
			p.queue = append(p.queue, s)
		}
	}
	if len(parts) == 0 {
		p.queue = nil
	}
	return parts
}

// gapless returns the events that come one after the other from next on.
func gapless(batch []events.Event, next int64) []events.Event {
	for i := range batch {
		if batch[i].Seq != next+int64(i) {
			return batch[:i]
		}
	}
	return batch
}

func newPart(after int64, found []events.Event, server string, wanted func(*events.Event) bool) part {
	p := part{after: after, events: found, server: server}
	if wanted == nil {
		p.wanted = found
		return p
	}
	for i := range found {
		if wanted(&found[i]) {
			p.wanted = append(p.wanted, found[i])
		}
	}
	return p
}

func (p *part) stream() string { return p.events[0].Stream }

// next is the beginning of the part that one step takes: what the sink is given before the
// first event to be parked or, where that comes first, the events to be parked up to the next
// one that the sink is given. What comes behind a parked event is delivered only once the
// offset has moved past that: a sink that is ahead has no parked event behind the offset.
func (p *part) next(parks func(*events.Event) bool) part {
	at := func(parked bool) int {
		n := 0
		for n < len(p.wanted) && parks(&p.wanted[n]) != parked {
			n++
		}
		return n
	}
	if n := at(true); n > 0 || len(p.wanted) == 0 {
		return p.before(n)
	}
	next := p.before(at(false))
	next.parked, next.wanted = next.wanted, nil
	return next
}

// fits is the beginning of a part that is parked, up to so many events.
func (p *part) fits(n int) part {
	fits := (&part{after: p.after, events: p.events, wanted: p.parked}).before(n)
	fits.parked, fits.wanted = fits.wanted, nil
	return fits
}

// before is the part up to the wanted event with that number, without it.
func (p *part) before(n int) part {
	end := len(p.events)
	if n < len(p.wanted) {
		end = int(p.wanted[n].Seq - p.events[0].Seq) // There is no gap.
	}
	return part{after: p.after, events: p.events[:end], wanted: p.wanted[:n]}
}

// behind is what is left of the part behind its beginning.
func (p *part) behind(done part) part {
	left := part{
		after: p.after, events: p.events[len(done.events):], server: p.server,
		wanted: p.wanted[len(done.wanted)+len(done.parked):],
	}
	if n := len(done.events); n > 0 {
		left.after = done.events[n-1].Seq
	}
	return left
}

// stored is the beginning of the part whose wanted events are those that the sink has stored;
// nil for none.
func (p *part) stored(last *events.Position) part {
	if len(p.wanted) == 0 {
		return *p
	}
	n := 0
	if last != nil {
		n, _ = slices.BinarySearchFunc(p.wanted, last.Seq+1, func(e events.Event, seq int64) int { return cmp.Compare(e.Seq, seq) })
	}
	return p.before(n)
}

// claims finds, by stream, what a result says of a batch. It returns false for a result
// that no sound sink gives: of events that are not in the batch, or of a rejection that
// is not behind what is stored.
func claims(batch []events.Event, r sink.Result) (stored map[string]*events.Position, rejected map[string]*sink.Rejection, ok bool) {
	first := make(map[string]int) // Of each stream; the others are behind it.
	for i := range batch {
		if i == 0 || batch[i].Stream != batch[i-1].Stream {
			first[batch[i].Stream] = i
		}
	}
	given := func(p events.Position) bool {
		i, ok := first[p.Stream]
		for ; ok && i < len(batch) && batch[i].Stream == p.Stream; i++ {
			if batch[i].Seq == p.Seq && batch[i].ID == p.ID {
				return true
			}
		}
		return false
	}
	stored, rejected = make(map[string]*events.Position, len(r.Stored)), make(map[string]*sink.Rejection, len(r.Rejected))
	for i := range r.Stored {
		p := &r.Stored[i]
		if !given(*p) || stored[p.Stream] != nil {
			return nil, nil, false
		}
		stored[p.Stream] = p
	}
	for i := range r.Rejected {
		x := &r.Rejected[i]
		last := stored[x.Stream]
		if !given(x.Position) || rejected[x.Stream] != nil || last != nil && last.Seq >= x.Seq {
			return nil, nil, false
		}
		rejected[x.Stream] = x
	}
	return stored, rejected, true
}
