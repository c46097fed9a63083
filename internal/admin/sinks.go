package admin

import (
	"context"
	"slices"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/wiring"
)

// sink returns the sink of the configuration with that id.
func (op *Operator) sink(id string) (config.Sink, error) {
	s, ok := fn.Find(op.cfg.Sinks, func(s config.Sink) bool { return s.ID == id })
	if !ok {
		known := fn.Each(op.cfg.Sinks, func(s config.Sink) string { return s.ID })
		return s, &wiring.UnknownIDError{What: "sink", ID: id, Known: known}
	}
	return s, nil
}

// onSink is ready for an act on a sink of the configuration.
func (op *Operator) onSink(ctx context.Context, id string) error {
	if _, err := op.sink(id); err != nil {
		return err
	}
	return op.ready(ctx)
}

// PauseSink has the relays of all nodes leave a sink alone until it is resumed: its events
// are kept. It reports false for one that is paused.
func (op *Operator) PauseSink(ctx context.Context, id string, by By) (changed bool, err error) {
	if err := op.onSink(ctx, id); err != nil {
		return false, err
	}
	return op.db.Operations().PauseSink(ctx, id, by)
}

// ResumeSink lets a sink be fed again. It reports false for one that is not paused.
func (op *Operator) ResumeSink(ctx context.Context, id string, by By) (changed bool, err error) {
	if err := op.onSink(ctx, id); err != nil {
		return false, err
	}
	return op.db.Operations().ResumeSink(ctx, id, by)
}

// KnowsStream returns nil for a sink of the configuration and a stream of the event log, and an
// [*wiring.UnknownIDError] for others.
func (op *Operator) KnowsStream(ctx context.Context, id, stream string) error {
	if err := op.onSink(ctx, id); err != nil {
		return err
	}
	streams, err := op.db.Streams().Statuses(ctx)
	if err != nil {
		return err
	}
	known := fn.Each(streams, func(s lockdb.StreamStatus) string { return s.Stream })
	if !slices.Contains(known, stream) {
		return &wiring.UnknownIDError{What: "stream", ID: stream, Known: known}
	}
	return nil
}

// AdoptSink has a stream go on from the offset of a sink, whatever the sink holds of it. It
// reports false where that is so already. The error is that of KnowsStream.
func (op *Operator) AdoptSink(ctx context.Context, id, stream string, by By) (changed bool, err error) {
	if err := op.KnowsStream(ctx, id, stream); err != nil {
		return false, err
	}
	return op.db.Operations().AdoptSink(ctx, id, stream, by)
}

// Sinks returns the sinks of the configuration.
func (op *Operator) Sinks() []config.Sink { return op.cfg.Sinks }

// tabled are settings of a sink that needs tables of its own.
type tabled interface{ DDL() string }

// SinkSQL returns the statements that make the tables of a sink.
func (op *Operator) SinkSQL(id string) (string, error) {
	s, err := op.sink(id)
	if err != nil {
		return "", err
	}
	if t, ok := s.Settings.(tabled); ok {
		return t.DDL(), nil
	}
	with := slices.DeleteFunc(slices.Clone(op.cfg.Sinks), func(s config.Sink) bool { _, ok := s.Settings.(tabled); return !ok })
	return "", &wiring.UnknownIDError{What: "sink with tables", ID: id, Known: fn.Each(with, func(s config.Sink) string { return s.ID })}
}
