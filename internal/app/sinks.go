package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/events/sink/file"
	"github.com/observerd/observerd/internal/lock"
)

func (a *App) newRelay(s config.Sink) (*events.Relay, error) {
	name := sinkLock(s.ID)
	var streams []string
	for _, o := range a.cfg.Observers {
		streams = append(streams, o.ID)
	}
	return events.NewRelay(events.Options{
		Sink: s.ID, Streams: streams, Log: a.db.Log(), BatchSize: s.BatchSize, Logger: a.component("relay"), Registerer: a.registry, Pulse: a.pulse,
		Freed: func() <-chan struct{} { return a.liveness.Freed(a.request(name)) },
		Open:  func(ctx context.Context) (events.Sink, error) { return a.openSink(ctx, s) },
		Lead: func(ctx context.Context) (events.Lease, error) {
			lease, err := a.keeper.Acquire(ctx, a.request(name))
			if errors.Is(err, lock.ErrHeld) {
				return nil, events.ErrHeld
			}
			if err != nil {
				return nil, err
			}
			return lease, nil
		},
	})
}

// sinkLock is the name of the lock of the relay that feeds a sink.
func sinkLock(id string) string { return "sink-" + id }

// openSink opens a sink of the configured type. A new type is one package and
// one line here. The process has one stdout, and so one sink for it.
func (a *App) openSink(ctx context.Context, s config.Sink) (events.Sink, error) {
	switch s.Type {
	case config.SinkStdout:
		return a.stdout, nil
	case config.SinkFile:
		return a.openFile(ctx, s)
	}
	return nil, fmt.Errorf("unknown type %q", s.Type)
}

// openFile opens a file, which remembers over a restart of this process what was in
// the log.
func (a *App) openFile(ctx context.Context, s config.Sink) (events.Sink, error) {
	sink, err := file.Open(ctx, file.Options{
		Path: s.Path, Remember: 2 * max(s.BatchSize, 10_000), Logger: a.component("sink").With("sink", s.ID),
	})
	if err != nil {
		return nil, err
	}
	if last, ok := sink.Last(); ok {
		a.db.Log().Delivered(ctx, last)
	}
	return sink, nil
}
