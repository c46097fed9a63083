package admin

import (
	"context"
	"maps"
	"slices"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/wiring"
)

// configured returns an observer of the configuration.
func (op *Operator) configured(id string) (config.Observer, error) {
	var ids []string
	for _, o := range op.cfg.Observers {
		if o.ID == id {
			return o, nil
		}
		ids = append(ids, o.ID)
	}
	return config.Observer{}, &wiring.UnknownObserverError{ID: id, Known: slices.Sorted(slices.Values(ids))}
}

// known checks that the configuration or the database has the id, and returns the
// observers of the database.
func (op *Operator) known(ctx context.Context, id string) (map[string]lockdb.StreamStatus, error) {
	polled, err := op.polled(ctx)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]bool)
	for name := range polled {
		ids[name] = true
	}
	for _, o := range op.cfg.Observers {
		ids[o.ID] = true
	}
	if !ids[id] {
		return nil, &wiring.UnknownObserverError{ID: id, Known: sortedKeys(ids)}
	}
	return polled, nil
}

// polled returns the observers of the database.
func (op *Operator) polled(ctx context.Context) (map[string]lockdb.StreamStatus, error) {
	if err := op.ready(ctx); err != nil {
		return nil, err
	}
	statuses, err := op.db.Streams().Statuses(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]lockdb.StreamStatus, len(statuses))
	for _, s := range statuses {
		byID[s.Stream] = s
	}
	return byID, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
