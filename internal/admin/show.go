package admin

import (
	"context"
	"errors"
	"slices"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wiring"
)

// Show returns all that is known of an observer. Its error is a
// [*wiring.UnknownIDError] where neither configuration nor database has the id.
func (op *Operator) Show(ctx context.Context, id string) (status.ObserverDetails, error) {
	r, err := op.Report(ctx)
	if err != nil {
		return status.ObserverDetails{}, err
	}
	i := slices.IndexFunc(r.Observers, func(o status.Observer) bool { return o.ID == id })
	if i < 0 {
		return status.ObserverDetails{}, &wiring.UnknownIDError{ID: id, Known: fn.Each(r.Observers, func(o status.Observer) string { return o.ID })}
	}
	return wiring.Details(ctx, op.db, op.cfg, r, i)
}

// changesOf are the changes that the events of an observer tell of.
var changesOf = map[string][]events.Change{
	config.DetectNew:      {events.ChangeNew},
	config.DetectChange:   {events.ChangeNew, events.ChangeChanged},
	config.DetectSnapshot: {events.ChangeNew, events.ChangeChanged, events.ChangeGone},
}

// EventSchema returns the JSON Schema of an observer's events, by what its source says of
// the columns now. It does not ask the coordination database.
func (op *Operator) EventSchema(ctx context.Context, id string) (_ []byte, err error) {
	o, src, err := op.sourceOf(id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	q, err := observer.WithKey(ctx, src, wiring.Query(o))
	if err != nil {
		return nil, err
	}
	d, err := src.Describe(ctx, q)
	if err != nil {
		return nil, err
	}
	s, err := source.Select(q, d.Columns, d.Table)
	if err != nil {
		return nil, err
	}
	c := events.Contract{Stream: o.ID, Type: o.Event, Changes: changesOf[o.Detect], Members: s.EventMembers(), More: len(o.Columns) == 0}
	return c.Schema()
}
