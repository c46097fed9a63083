package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/wiring"
)

func (a *App) newRelay(s config.Sink) (*events.Relay, error) {
	settings, ok := s.Settings.(events.SinkSettings)
	if !ok {
		return nil, fmt.Errorf("sink %s: the configuration was loaded without the type %q", s.ID, s.Type)
	}
	name := wiring.SinkLock(s.ID)
	var streams []events.Stream
	for _, o := range a.cfg.Observers {
		stream := events.Stream{ID: o.ID, Type: o.Type}
		if o.Timestamp != "" {
			stream.Zone = a.cfg.Sources[o.Source].Location()
		}
		streams = append(streams, stream)
	}
	return events.NewRelay(events.Options{
		Sink: s.ID, Streams: streams, Log: a.db.Log(), BatchSize: s.BatchSize, Logger: a.component("relay"), Registerer: a.registry, Pulse: a.loops,
		Freed: func() <-chan struct{} { return a.liveness.Freed(wiring.LockRequest(a.cfg, name)) },
		Open: settings.Opener(events.SinkOptions{
			BatchSize: s.BatchSize, Logger: a.component("sink").With("sink", s.ID), Stdout: a.stdout, Terminal: a.terminal,
			Ended: func(ctx context.Context, last events.Event) { a.db.Log().Delivered(ctx, last) },
		}),
		Lead: func(ctx context.Context) (events.Lease, error) {
			lease, err := a.keeper.Acquire(ctx, wiring.LockRequest(a.cfg, name))
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
