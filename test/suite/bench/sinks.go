package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/sink"
)

const (
	sinksGroup = "Events from the log to a sink"
	goalSQL    = 0.7
	goalKafka  = 0.6
)

// measureSinks measures the relay with each kind of sink beside a bare publisher of the same
// client, which has the events in memory and is acknowledged them alike.
func measureSinks(ctx context.Context, s *suite) (figures []figure, err error) {
	f, err := openFeed(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.db.Close()) }()
	for _, measure := range []func(context.Context, *feed) ([]figure, error){measureRelay, measureSQL, measureKafka, measureWebhook} {
		found, err := measure(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			s.progress("sinks: %s: %s; %s", one.what, one.value, one.beside)
		}
		figures = append(figures, found...)
	}
	return figures, nil
}

// measureRelay has the relay read and acknowledge alone: no sink is faster.
func measureRelay(ctx context.Context, f *feed) ([]figure, error) {
	rates, err := f.inTurns(ctx, len(f.events), func(ctx context.Context, round int) (time.Duration, error) {
		return f.deliver(ctx, fmt.Sprint("forgets-", round), feedBatch, len(f.events), func(context.Context, sink.Term) (sink.Sink, error) { return forgets{}, nil })
	})
	if err != nil {
		return nil, err
	}
	return []figure{{
		group: sinksGroup, what: fmt.Sprintf("a sink that stores nothing, batches of %s", thousands(feedBatch)),
		value: say("%s events/s", whole(float64(median(rates[0])))),
	}}, nil
}
