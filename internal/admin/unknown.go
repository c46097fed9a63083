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
	polled, ids, err := op.ids(ctx)
	if err == nil && !slices.Contains(ids, id) {
		err = &wiring.UnknownObserverError{ID: id, Known: ids}
	}
	return polled, err
}

// ids returns the observers of the database, and the ids, sorted, that it or the
// configuration has.
func (op *Operator) ids(ctx context.Context) (polled map[string]lockdb.StreamStatus, ids []string, err error) {
	polled, err = op.polled(ctx)
	ids = slices.Collect(maps.Keys(polled))
	for _, o := range op.cfg.Observers {
		ids = append(ids, o.ID)
	}
	slices.Sort(ids)
	return polled, slices.Compact(ids), err
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
