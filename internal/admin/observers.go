package admin

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wiring"
)

// Report describes the cluster, and what this configuration says of its types, observers
// and sinks. An observer that was never polled is in it too.
func (op *Operator) Report(ctx context.Context) (status.Report, error) {
	if err := op.ready(ctx); err != nil {
		return status.Report{}, err
	}
	r, err := op.db.Report(ctx, op.cfg.Scheduler.LockRegions())
	if err == nil {
		wiring.Describe(op.cfg, &r)
	}
	return r, err
}

// Selection says which observers a command is for: those of IDs and Type together, or All
// that the configuration or the coordination database has.
type Selection struct {
	IDs  []string
	Type string
	All  bool
}

// Select returns the ids of a selection, sorted. It fails for an id or a type that is not
// there, before anything is done to the others.
func (op *Operator) Select(ctx context.Context, s Selection) ([]string, error) {
	_, ids, err := op.ids(ctx)
	if err != nil || s.All {
		return ids, err
	}
	for _, id := range s.IDs {
		if !slices.Contains(ids, id) {
			return nil, &wiring.UnknownIDError{ID: id, Known: ids}
		}
	}
	types := fn.Group(op.cfg.Observers, func(o config.Observer) (typ, id string) { return o.Type, o.ID })
	if s.Type != "" && types[s.Type] == nil {
		return nil, &wiring.UnknownIDError{What: "observer type", ID: s.Type, Known: slices.Sorted(maps.Keys(types))}
	}
	return fn.Distinct(slices.Concat(s.IDs, types[s.Type])), nil
}

// configured returns an observer of the configuration.
func (op *Operator) configured(id string) (config.Observer, error) {
	o, ok := fn.Find(op.cfg.Observers, func(o config.Observer) bool { return o.ID == id })
	if !ok {
		known := fn.Distinct(fn.Each(op.cfg.Observers, func(o config.Observer) string { return o.ID }))
		return o, &wiring.UnknownIDError{ID: id, Known: known}
	}
	return o, nil
}

// known checks that the configuration or the database has the id, and returns the
// observers of the database.
func (op *Operator) known(ctx context.Context, id string) (map[string]lockdb.StreamStatus, error) {
	polled, ids, err := op.ids(ctx)
	if err == nil && !slices.Contains(ids, id) {
		err = &wiring.UnknownIDError{ID: id, Known: ids}
	}
	return polled, err
}

// ids returns the observers of the database, and the ids, sorted, that it or the
// configuration has.
func (op *Operator) ids(ctx context.Context) (polled map[string]lockdb.StreamStatus, ids []string, err error) {
	polled, err = op.polled(ctx)
	ids = slices.Collect(maps.Keys(polled))
	ids = append(ids, fn.Each(op.cfg.Observers, func(o config.Observer) string { return o.ID })...)
	return polled, fn.Distinct(ids), err
}

// polled returns the observers of the database.
func (op *Operator) polled(ctx context.Context) (map[string]lockdb.StreamStatus, error) {
	if err := op.ready(ctx); err != nil {
		return nil, err
	}
	statuses, err := op.db.Streams().Statuses(ctx)
	return fn.By(statuses, func(s lockdb.StreamStatus) string { return s.Stream }), err
}

// By is who does something, and why, see package lockdb.
type By = lockdb.By

// Pause stops the polls of an observer on every node until its time is over or
// [Operator.Resume], over restarts too. A time of 0 is never over. A pause of before is made longer, and never
// shorter. Pause reports false when that one lasts as long. The id is one that
// [Operator.Select] has returned: to look it up again for each of many takes longer than all else.
func (op *Operator) Pause(ctx context.Context, id string, by By, lasts time.Duration) (changed bool, err error) {
	return op.db.Operations().Pause(ctx, id, by, lasts)
}

// Resume lets a paused observer be polled again and ends its backoff; an account
// of its source that was refused may be tried again. It reports false when there
// was nothing to end. The id is as for [Operator.Pause].
func (op *Operator) Resume(ctx context.Context, id string, by By) (changed bool, err error) {
	account := ""
	if configured, err := op.configured(id); err == nil { // Otherwise no source is known of it.
		account, _ = op.cfg.Sources[configured.Source].URL.Account()
	}
	return op.db.Operations().Resume(ctx, id, by, account)
}

// ResetOptions say how much a reset forgets, see package lockdb.
type ResetOptions = lockdb.ResetOptions

// Reset sets an observer back to the beginning of its source, or to its start if it
// started now, or lets it continue with another query or other columns. It reports false for an observer that
// was never polled.
func (op *Operator) Reset(ctx context.Context, id string, by By, o ResetOptions) (changed bool, err error) {
	polled, err := op.known(ctx, id)
	if err != nil {
		return false, err
	}
	if _, ok := polled[id]; !ok {
		return false, nil
	}
	if configured, err := op.configured(id); err == nil {
		o.FromStart, _ = configured.StartAt()
	}
	return true, op.db.Operations().Reset(ctx, id, by, o)
}

// Refusal is the change of a source that the last poll of an observer refused.
type Refusal struct {
	// Text describes it; empty for none.
	Text string
	// Next is what does it once it is accepted: "next poll", or the next step of a sweep.
	Next string
	// Accepted says that an operator has accepted it.
	Accepted bool
	// noted is the refusal as the cursor has it.
	noted string
}

// Refused returns the refusal of the last poll of an observer.
func (op *Operator) Refused(ctx context.Context, id string) (r Refusal, err error) {
	if _, err := op.known(ctx, id); err != nil {
		return r, err
	}
	if r.noted, r.Accepted, err = op.db.Streams().Refused(ctx, id); err != nil {
		return r, err
	}
	decoded, err := observer.DecodeRefusal(r.noted)
	r.Text, r.Next = decoded.Text, "next poll"
	if decoded.Sweep != "" {
		r.Next = "next step of the " + string(decoded.Sweep)
	}
	return r, err
}

// Accept lets the next poll of an observer, on whichever node, go as far as the
// refusal says, once. The error is lockdb.ErrRefusalMoved when the observer has refused
// something else since.
func (op *Operator) Accept(ctx context.Context, id string, by By, r Refusal) error {
	return op.db.Operations().Accept(ctx, id, by, r.noted, r.Text)
}

// KnowsObserver returns nil when the configuration or the database has the id,
// and an [*wiring.UnknownIDError] when neither has.
func (op *Operator) KnowsObserver(ctx context.Context, id string) error {
	_, err := op.known(ctx, id)
	return err
}
