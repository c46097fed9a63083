package main

import (
	"context"
	"errors"
	"fmt"
	"time"
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
	for _, measure := range []func(context.Context, *feed) ([]figure, error){measureSQL, measureKafka, measureWebhook} {
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

// inTurns lets both sides publish, one after the other, in as many rounds as are wanted. The
// first one is not counted: it connects, and plans.
func (f *feed) inTurns(ctx context.Context, n int, ours, bare func(ctx context.Context, round int) (time.Duration, error)) (v versus, err error) {
	for round := range f.rounds + 1 {
		if err := f.cluster.checkpoint(ctx); err != nil {
			return versus{}, err
		}
		us, err := ours(ctx, round)
		if err != nil {
			return versus{}, err
		}
		if err := f.cluster.checkpoint(ctx); err != nil {
			return versus{}, err
		}
		them, err := bare(ctx, round)
		if err != nil {
			return versus{}, fmt.Errorf("the bare publisher: %w", err)
		}
		if round > 0 {
			v.ours, v.bare = append(v.ours, rateOf(n, us)), append(v.bare, rateOf(n, them))
		}
	}
	return v, nil
}
