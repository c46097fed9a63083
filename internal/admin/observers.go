package admin

import (
	"context"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wiring"
)

// Report describes the cluster, and what this configuration says of its types, observers
// and sinks. An observer that was never polled is in it too.
func (op *Operator) Report(ctx context.Context) (Report, error) {
	if err := op.ready(ctx); err != nil {
		return Report{}, err
	}
	r, err := op.db.Report(ctx, op.cfg.Scheduler.LockRegions())
	if err == nil {
		describe(op.cfg, &r)
	}
	return r, err
}

// describe adds what the configuration says.
func describe(cfg *config.Config, r *Report) {
	nameLocks(cfg, r)
	for i, t := range r.Types {
		if configured, ok := typeNamed(cfg, t.Name); ok {
			r.Types[i].Interval, r.Types[i].NextAt = configured.Interval, nextTurn(r, configured, r.At)
		}
	}
	byID := make(map[string]status.Observer)
	for _, o := range r.Observers {
		o.State = status.StateRemoved
		byID[o.ID] = o
	}
	for _, o := range cfg.Observers {
		byID[o.ID] = describeObserver(cfg, r, o)
	}
	r.Observers = nil
	for _, id := range sortedKeys(byID) {
		r.Observers = append(r.Observers, byID[id])
	}
}

func describeObserver(cfg *config.Config, r *Report, o config.Observer) status.Observer {
	s := status.Observer{ID: o.ID, State: status.StateActive}
	if i := slices.IndexFunc(r.Observers, func(known status.Observer) bool { return known.ID == o.ID }); i >= 0 {
		s = r.Observers[i]
	}
	s.Type, s.Source, s.Detect, s.Interval = o.Type, o.Source, o.Detect, wiring.TypeOf(cfg, o).Interval
	t, ok := typeNamed(cfg, o.Type)
	switch enabled := ok && o.Enabled && t.Enabled; {
	case enabled:
		s.NextPollAt = nextPoll(r, t, s)
	case s.Pause == nil:
		s.State = status.StateDisabled
	}
	return s
}

// typeNamed returns a type that has observers.
func typeNamed(cfg *config.Config, name string) (config.Type, bool) {
	for _, t := range cfg.Types() {
		if t.Name == name {
			return t, true
		}
	}
	return config.Type{}, false
}

// nameLocks names the locks of the configuration that strangers hold, and who feeds the
// sinks.
func nameLocks(cfg *config.Config, r *Report) {
	names := make(map[string]string)
	for _, l := range expectation(cfg).Locks {
		names[l.Key()] = l.Name
	}
	feeds := make(map[string]string)
	for i, l := range r.Locks {
		if l.Name == "" {
			r.Locks[i].Name = names[l.Key]
		}
		if l.Left > 0 {
			feeds[l.Name] = l.Holder
		}
	}
	for i, s := range r.Sinks {
		r.Sinks[i].Node = feeds[wiring.SinkLock(s.Sink)]
	}
}

// nextTurn returns the first turn of a type at a time or after it; zero where no live node
// polls it.
func nextTurn(r *Report, t config.Type, at time.Time) time.Time {
	polled := slices.ContainsFunc(r.Nodes, func(n status.Node) bool { return !n.Gone && slices.Contains(n.Types, t.Name) })
	if !polled {
		return time.Time{}
	}
	return schedule.NextTurn(t.Interval, t.Shift, at)
}

// nextPoll returns the first turn of a type in which the observer is polled; zero for
// none.
func nextPoll(r *Report, t config.Type, o status.Observer) time.Time {
	at := r.At
	if o.Pause != nil {
		if at = o.Pause.Until; at.IsZero() {
			return at
		}
	}
	if o.RetryAt.After(at) {
		at = o.RetryAt
	}
	return nextTurn(r, t, at)
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
	polled, err := op.polled(ctx)
	if err != nil {
		return nil, err
	}
	ids, types := make(map[string]bool), make(map[string][]string)
	for id := range polled {
		ids[id] = true
	}
	for _, o := range op.cfg.Observers {
		ids[o.ID], types[o.Type] = true, append(types[o.Type], o.ID)
	}
	if s.All {
		return sortedKeys(ids), nil
	}
	for _, id := range s.IDs {
		if !ids[id] {
			return nil, &wiring.UnknownObserverError{ID: id, Known: sortedKeys(ids)}
		}
	}
	if s.Type != "" && types[s.Type] == nil {
		return nil, &wiring.UnknownObserverError{What: "observer type", ID: s.Type, Known: sortedKeys(types)}
	}
	selected := slices.Concat(s.IDs, types[s.Type])
	slices.Sort(selected)
	return slices.Compact(selected), nil
}
