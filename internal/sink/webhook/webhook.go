// Package webhook is a sink that sends events to a receiver by HTTP: CloudEvents, signed as
// Standard Webhooks describes it.
//
// A receiver gets each event at least once, always under the same id. Events of one key come
// in order: the next one is sent when the receiver has taken the one before. Those of other
// keys are sent at the same time, up to a number of requests.
package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/webhooks"
)

const (
	// round is how long one call of Deliver begins requests, unless it has nothing to tell
	// then: with the last one's timeout it ends before the relay's patience does.
	round = 5 * time.Second
	// failures is after how many failed requests, each of which may be due to its event
	// alone, a call of Deliver gives up.
	failures = 3
	// remembered is how many events are known that are stored ahead of an earlier one.
	remembered = 50_000
	// arrayEvents and arrayBytes bound a request in mode batched. Proxies take a mebibyte.
	arrayEvents = 100
	arrayBytes  = 512 << 10
)

// Options are what a [Sink] needs.
type Options struct {
	// URL is where requests go. Required.
	URL string
	// Secrets sign each request. None: it is not signed.
	Secrets []webhooks.Secret
	// Headers are sent with each request.
	Headers map[string]string
	// TLS is for https. Nil: the authorities of the system.
	TLS *tls.Config
	// Mode is structured, binary or batched. Required.
	Mode string
	// Concurrency is how many requests are under way at most. With 1 whole streams are in
	// order, not only keys. Required.
	Concurrency int
	// Timeout bounds a request. Required.
	Timeout time.Duration
	// Insecure allows plain HTTP to others than this host.
	Insecure bool
	// Requests is told how long each request took, by the class of its answer. Nil is not told.
	Requests prometheus.ObserverVec
}

// Sink sends events to a receiver.
type Sink struct {
	opts   Options
	client *http.Client
	// ahead are events that are stored while one before them in their stream is not: they
	// will be delivered again, and need not be sent again.
	ahead map[uuid.UUID]struct{}
}

// Open makes a sink. It does not connect.
func Open(o Options) *Sink {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client := &http.Client{Transport: transport(o), CheckRedirect: stay}
	return &Sink{opts: o, client: client, ahead: make(map[uuid.UUID]struct{})}
}

// Close implements [sink.Sink].
func (s *Sink) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// request is events that are sent together, by their places in the batch.
type request struct {
	events []int
	bytes  int
	// next is sent when this one is done: it has later events of the same keys.
	next *request
}

// delivery is one call of Deliver.
type delivery struct {
	batch    []events.Event
	stored   []bool
	rejected map[int]string
	// blocked are the streams of which nothing more is sent.
	blocked map[string]bool
	// ready may be sent, in the order of the batch.
	ready []*request
	// err is why the delivery failed, after so many failures; over says that all others
	// would fail, too.
	err    error
	failed int
	over   bool
}

// Deliver implements [sink.Sink]. All requests are over when it returns.
func (s *Sink) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	d := s.plan(batch)
	begun := time.Now()
	type answer struct {
		of  *request
		err error
	}
	answers := make(chan answer)
	for underWay := 0; ; {
		for underWay < s.opts.Concurrency && !d.over && ctx.Err() == nil && (time.Since(begun) < round || underWay == 0 && !d.tells()) {
			r := d.take()
			if r == nil {
				break
			}
			underWay++
			go func() { answers <- answer{r, s.send(ctx, batch, r.events)} }()
		}
		if underWay == 0 {
			break
		}
		a := <-answers
		underWay--
		d.settle(a.of, a.err)
	}
	result := d.result()
	s.remember(d, result)
	if d.err != nil {
		s.client.CloseIdleConnections() // The next attempt asks for the address again.
	}
	if ctx.Err() != nil && slices.Contains(d.stored, false) {
		return result, context.Cause(ctx)
	}
	return result, d.err
}

// plan makes requests of the events that are not stored already.
func (s *Sink) plan(batch []events.Event) *delivery {
	d := &delivery{
		batch: batch, stored: make([]bool, len(batch)),
		rejected: make(map[int]string), blocked: make(map[string]bool),
	}
	last := make(map[string]*request)
	for i := range batch {
		e := &batch[i]
		if _, d.stored[i] = s.ahead[e.ID]; d.stored[i] {
			continue
		}
		lane := s.lane(e)
		before := last[lane]
		if s.opts.Mode == "batched" && before != nil && len(before.events) < arrayEvents && before.bytes+len(e.Data) <= arrayBytes {
			before.events, before.bytes = append(before.events, i), before.bytes+len(e.Data)
			continue
		}
		r := &request{events: []int{i}, bytes: len(e.Data)}
		if before == nil {
			d.ready = append(d.ready, r)
		} else {
			before.next = r
		}
		last[lane] = r
	}
	return d
}

// lane names what is sent one after the other: all events of a key are in one lane.
func (s *Sink) lane(e *events.Event) string {
	key := e.Stream + "\x00" + e.Subject
	switch {
	case s.opts.Concurrency == 1:
		return ""
	case s.opts.Mode == "batched": // Few lanes make full arrays.
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(key)) // A hash takes everything.
		return fmt.Sprint(hash.Sum32() % uint32(s.opts.Concurrency))
	}
	return key
}

// take returns the next request, without the events of streams that are blocked; nil for
// none.
func (d *delivery) take() *request {
	for len(d.ready) > 0 {
		r := d.ready[0]
		d.ready = d.ready[1:]
		r.events = slices.DeleteFunc(r.events, func(i int) bool { return d.blocked[d.batch[i].Stream] })
		if len(r.events) > 0 {
			return r
		}
		d.add(r.next)
	}
	return nil
}

func (d *delivery) add(r *request) {
	if r == nil {
		return
	}
	at, _ := slices.BinarySearchFunc(d.ready, r, func(a, b *request) int { return cmp.Compare(a.events[0], b.events[0]) })
	d.ready = slices.Insert(d.ready, at, r)
}

// settle notes what has become of a request.
func (d *delivery) settle(r *request, err error) {
	no, refused := errors.AsType[*refusal](err)
	switch n := len(r.events); {
	case err == nil:
		for _, i := range r.events {
			d.stored[i] = true
		}
	case refused && n > 1: // One of them is refused: which one?
		rest := &request{events: r.events[n/2:], next: r.next}
		d.add(&request{events: r.events[: n/2 : n/2], next: rest})
		return
	case refused:
		d.rejected[r.events[0]] = no.reason
		d.block(r)
	default:
		everybodys := errors.As(err, new(*outage))
		if d.failed++; d.err == nil || everybodys {
			d.err = err
		}
		d.over = d.over || everybodys || d.failed >= failures
		d.block(r)
	}
	d.add(r.next)
}

func (d *delivery) block(r *request) {
	for _, i := range r.events {
		d.blocked[d.batch[i].Stream] = true
	}
}

// tells reports whether there is something to tell the relay by now: an array of which one
// event is refused takes several requests.
func (d *delivery) tells() bool {
	r := d.result()
	return d.err != nil || len(r.Stored)+len(r.Rejected) > 0
}

func (d *delivery) result() sink.Result {
	result := sink.StoredOf(d.batch, func(i int) bool { return d.stored[i] })
	begun := make(map[string]bool)
	for i, e := range d.batch {
		if d.stored[i] || begun[e.Stream] {
			continue
		}
		begun[e.Stream] = true
		if reason, ok := d.rejected[i]; ok {
			at := events.Position{Stream: e.Stream, Seq: e.Seq, ID: e.ID}
			result.Rejected = append(result.Rejected, sink.Rejection{Position: at, Reason: reason})
		}
	}
	return result
}

// remember keeps the events that are stored and not in the result.
func (s *Sink) remember(d *delivery, r sink.Result) {
	last := fn.By(r.Stored, func(p events.Position) string { return p.Stream })
	if len(s.ahead) > remembered {
		clear(s.ahead) // They are sent again, which is allowed.
	}
	for i, e := range d.batch {
		if e.Seq <= last[e.Stream].Seq {
			delete(s.ahead, e.ID)
		} else if d.stored[i] {
			s.ahead[e.ID] = struct{}{}
		}
	}
}
