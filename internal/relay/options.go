package relay

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

// Options say what a relay delivers, and where to.
type Options struct {
	// Sink is the id under which the event log keeps the sink's offsets.
	// Required.
	Sink string
	// Log is the event log. Required.
	Log events.Log
	// Open returns the sink; it is called at the beginning of each term, again while it
	// fails, and for a [sink.Resumer] after each of its failures. The sink must not live on
	// ctx, which ends with the call. Required.
	Open func(ctx context.Context, t sink.Term) (sink.Sink, error)
	// Lead tries once to take the sink's lease, and bounds the attempt itself,
	// since a lease may live on the context that it was taken with. It returns
	// [ErrHeld] while another relay leads. Required.
	Lead func(ctx context.Context) (Lease, error)
	// Freed returns a channel that is closed when the sink's lease may have
	// become free, so that a relay that stands by need not wait for its next
	// attempt; nil where that is not known. nil: it never is.
	Freed func() <-chan struct{}
	// Streams are those whose lag is shown from the beginning of a term, also while it
	// is 0; others are shown once they had a backlog, and have no latency.
	Streams []Stream
	// Wanted reports whether the sink is given an event. The offset moves past all others.
	// nil: it is given every event.
	Wanted func(*events.Event) bool
	// Park has an event that the sink rejects put aside, and later ones of its key, in the
	// place of halting its stream.
	Park bool
	// BatchSize is how many events are read and delivered at once. 0: 500.
	BatchSize int
	// BatchBytes ends a batch early whose data is large; it has one event at least. 0: 4 MiB.
	BatchBytes int
	// Poll is how long the relay waits before it reads the backlog again, unless
	// [Relay.Wake] comes first. 0: 500 ms.
	Poll time.Duration
	// Standby is the time between two attempts to lead, give or take a quarter
	// of it. 0: 5 s.
	Standby time.Duration
	// Timeout bounds each call to the event log and to the sink. 0: 30 s.
	Timeout time.Duration
	// GiveUp is the number of failures of the sink in a row after which the
	// lease is given back, so that a node that does reach the sink may try:
	// about half a minute. 0: 8; negative: never.
	GiveUp int
	// Logger has what a person may have to act on. nil: no log.
	Logger *slog.Logger
	// Registerer takes the metrics, all labelled with the sink. nil: no metrics.
	Registerer prometheus.Registerer
	// Beat is called when the relay is alive, whether it leads or stands by, and will call
	// again within the given time; 0 means that it has ended. nil is not called.
	Beat func(loop string, within time.Duration)
}

// Stream is what a relay's metrics need to know of a stream.
type Stream struct {
	// ID is its name, Type that of its observer: the label of the latency.
	ID, Type string
	// Zone is the time zone of its source. Nil for a stream whose rows have no
	// timestamp, and so no latency.
	Zone *time.Location
}

func (o *Options) setDefaults() {
	o.BatchSize = cmp.Or(o.BatchSize, 500)
	o.BatchBytes = cmp.Or(o.BatchBytes, 4<<20)
	o.Poll = cmp.Or(o.Poll, 500*time.Millisecond)
	o.Standby = cmp.Or(o.Standby, 5*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.GiveUp = cmp.Or(o.GiveUp, 8)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Freed == nil {
		o.Freed = func() <-chan struct{} { return nil }
	}
	if o.Beat == nil {
		o.Beat = func(string, time.Duration) {}
	}
}
