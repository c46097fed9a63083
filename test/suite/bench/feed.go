package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/relay"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/test/kit/testbed"
)

const (
	// feedStreams is how many streams have a backlog, feedKeys how many keys each of them has.
	feedStreams, feedKeys = 4, 5_000
	// feedPatience bounds one delivery of all events.
	feedPatience = 10 * time.Minute
)

// These fill the event log with streams, each of as many events.
const (
	feedEventsSQL = `
		INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data)
		SELECT 'stream-' || s, n, gen_random_uuid(), 'NewOrderObservedEvent', 'order-' || n %% %[3]d, n / %[3]d + 1, 'updated', clock_timestamp(),
		       json_build_object('order_id', 'order-' || n %% %[3]d, 'customer', 'customer-' || n %% 977, 'status', 'RELEASED', 'total', n %% 10000 / 100.0,
		                         'note', repeat('x', 100), 'updated_at', '2026-11-01T00:00:00Z'::timestamptz + n * interval '1 second')
		  FROM generate_series(1, %[1]d) AS s, generate_series(1, %[2]d) AS n`
	feedCursorSQL = `INSERT INTO obs_cursor (stream, last_seq) SELECT 'stream-' || s, %[2]d FROM generate_series(1, %[1]d) AS s`
)

// fillLog has each of so many streams have as many events.
func fillLog(ctx context.Context, where string, streams, each int) error {
	return testbed.Execute(ctx, where, fmt.Sprintf(feedEventsSQL, streams, each, feedKeys), fmt.Sprintf(feedCursorSQL, streams, each),
		"VACUUM ANALYZE obs_event, obs_cursor")
}

// feed is an event log with a backlog for every sink.
type feed struct {
	*suite
	db *lockdb.DB
	// events are all of the log, as a bare publisher has them in memory.
	events []events.Event
}

func openFeed(ctx context.Context, s *suite) (*feed, error) {
	where, err := s.cluster.coordination(ctx, "feed")
	if err != nil {
		return nil, err
	}
	each := s.fed / feedStreams
	if err := fillLog(ctx, where, feedStreams, each); err != nil {
		return nil, fmt.Errorf("fill the event log: %w", err)
	}
	f := &feed{suite: s}
	if f.db, err = openStore(ctx, where); err != nil {
		return nil, err
	}
	for n := range feedStreams {
		stream := fmt.Sprint("stream-", n+1)
		for after := int64(0); ; {
			read, err := f.db.Log().After(ctx, stream, after, each)
			if err != nil {
				return nil, errors.Join(err, f.db.Close())
			}
			if len(read) == 0 {
				break
			}
			f.events = append(f.events, read...)
			after = read[len(read)-1].Seq
		}
	}
	return f, nil
}

// soleLease is one that nobody else wants.
type soleLease struct{ ctx context.Context }

func (l soleLease) Context() context.Context    { return l.ctx }
func (soleLease) Fence() int64                  { return 1 }
func (soleLease) Release(context.Context) error { return nil }

// awaitedLog ends a relay when it has acknowledged so many events.
type awaitedLog struct {
	events.Log
	left int
	end  context.CancelFunc
	at   time.Time
}

func (l *awaitedLog) Move(ctx context.Context, sink string, steps []events.Step, epoch int64) error {
	err := l.Log.Move(ctx, sink, steps, epoch)
	if err != nil {
		return err
	}
	for _, step := range steps {
		l.left -= len(step.Events)
	}
	if l.left <= 0 && l.at.IsZero() {
		l.at = time.Now()
		l.end()
	}
	return nil
}

// opener opens a sink for a term.
type opener = func(ctx context.Context, t sink.Term) (sink.Sink, error)

// deliver has a relay deliver the first events of the log to a sink that has none of them, and
// returns how long it took until the last was acknowledged. The id is one that was not there.
func (f *feed) deliver(ctx context.Context, id string, size, n int, open opener) (time.Duration, error) {
	ctx, end := context.WithTimeout(ctx, feedPatience)
	defer end()
	log := &awaitedLog{Log: f.db.Log(), left: n, end: end}
	began := time.Now()
	relay.New(relay.Options{
		Sink: id, Log: log, Open: open, BatchSize: size,
		Lead:   func(ctx context.Context) (relay.Lease, error) { return soleLease{ctx}, nil },
		Logger: slog.New(slog.NewTextHandler(f.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}).Run(ctx)
	if log.at.IsZero() {
		return 0, fmt.Errorf("%d of %d events were not delivered to %s: %w", log.left, n, id, context.Cause(ctx))
	}
	return log.at.Sub(began), nil
}

// deliverAlone has a sink store all events without a relay, as a bare publisher does.
func (f *feed) deliverAlone(ctx context.Context, size int, open opener) (_ time.Duration, err error) {
	s, err := open(ctx, sink.Term{Log: uuid.New(), Epoch: 1})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	began := time.Now()
	for batch := range slices.Chunk(f.events, size) {
		if _, err := s.Deliver(ctx, batch); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// forgets is a sink that stores nothing.
type forgets struct{}

func (forgets) Deliver(_ context.Context, batch []events.Event) (sink.Result, error) {
	return sink.StoredAll(batch), nil
}
func (forgets) Close() error { return nil }

// rate is one delivery, in events a second.
type rate float64

func rateOf(n int, took time.Duration) rate { return rate(float64(n) / took.Seconds()) }

// publish is one way to publish all events, in a round; the first one is round 0.
type publish = func(ctx context.Context, round int) (time.Duration, error)

// inTurns lets each way publish n events, one after the other, in as many rounds as are wanted.
// Round 0 is not counted: it connects, and plans.
func (f *feed) inTurns(ctx context.Context, n int, ways ...publish) ([][]rate, error) {
	rates := make([][]rate, len(ways))
	for round := range f.rounds + 1 {
		for i, publish := range ways {
			if err := f.cluster.checkpoint(ctx); err != nil {
				return nil, err
			}
			took, err := publish(ctx, round)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				rates[i] = append(rates[i], rateOf(n, took))
			}
		}
	}
	return rates, nil
}

func toBare(ours, bare []rate) float64 {
	return ratioOf(ours, bare, func(r rate) float64 { return float64(r) })
}

// rateFigure reports the rate of ours. A goal of 0 is none.
func rateFigure(what, publisher string, ours, bare []rate, goal float64) figure {
	f := figure{
		group: sinksGroup, what: what,
		value:  say("%s events/s, %s of the bare publisher", whole(float64(median(ours))), decimal(toBare(ours, bare), 2)),
		beside: say(publisher+" %s events/s", whole(float64(median(bare)))),
	}
	if goal > 0 {
		f.goal, f.met = fmt.Sprintf("at least %.1f of the bare publisher", goal), []bool{toBare(ours, bare) >= goal}
	}
	return f
}
