package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/nearest"
)

// sink returns the sink of the configuration with that id.
func (op *Operator) sink(id string) (config.Sink, error) {
	at := slices.IndexFunc(op.cfg.Sinks, func(s config.Sink) bool { return s.ID == id })
	if at < 0 {
		known := fn.Each(op.cfg.Sinks, func(s config.Sink) string { return s.ID })
		return config.Sink{}, fmt.Errorf("there is no sink %q in the configuration; %s", id, nearest.Suggest(id, known))
	}
	return op.cfg.Sinks[at], nil
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

// AdoptSink has a stream go on from the offset of a sink, whatever the sink holds of it. It
// reports false where that is so already. The error is of a stream that the event log does
// not have.
func (op *Operator) AdoptSink(ctx context.Context, id, stream string, by By) (changed bool, err error) {
	if err := op.onSink(ctx, id); err != nil {
		return false, err
	}
	streams, err := op.db.Streams().Statuses(ctx)
	if err != nil {
		return false, err
	}
	known := fn.Each(streams, func(s lockdb.StreamStatus) string { return s.Stream })
	if !slices.Contains(known, stream) {
		return false, fmt.Errorf("the event log has no stream %q; %s", stream, nearest.Suggest(stream, known))
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
	t, ok := s.Settings.(tabled)
	if !ok {
		return "", fmt.Errorf("sink %s is of type %s, which needs no tables", id, s.Type)
	}
	return t.DDL(), nil
}
