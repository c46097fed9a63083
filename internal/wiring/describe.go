package wiring

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/turn"
)

// Describe adds to a report what the configuration says of types, observers, sinks and locks,
// with observers that were never polled, and the verdict.
func Describe(cfg *config.Config, r *status.Report) {
	r.Cluster = cfg.Cluster.Name
	nameLocks(cfg, r)
	boundLocks(cfg.Locks.Policies, r.Locks)
	cfg = asPolled(cfg, r.Nodes)
	d := describer{cfg: cfg, report: r, types: cfg.Types(), reading: make(map[string]bool)}
	for _, g := range r.Generations {
		d.reading[g.Observer] = g.FinishedAt.IsZero()
	}
	r.Types = slices.DeleteFunc(r.Types, func(t status.Type) bool { // Of a former configuration.
		_, configured := d.typeNamed(t.Name)
		return !configured && !isPolled(r, t.Name, "")
	})
	for i, t := range r.Types {
		if configured, ok := d.typeNamed(t.Name); ok {
			r.Types[i].Interval, r.Types[i].NextAt = configured.Interval, nextTurn(r, configured, t.TurnAt)
		}
	}
	byID := fn.By(r.Observers, func(o status.Observer) string { return o.ID })
	d.overdue(byID)
	configured := make(map[string]bool)
	for _, o := range cfg.Observers {
		known := byID[o.ID]
		known.ID = o.ID
		byID[o.ID], configured[o.ID] = d.observer(o, known), true
	}
	r.Observers = nil
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		o := byID[id]
		if !configured[id] {
			o.State = status.StateRemoved
		}
		r.Observers = append(r.Observers, o)
	}
	r.Verdict = r.Judge()
}

// asPolled returns the configuration with the intervals at which the live nodes poll: they may
// be configured otherwise than the command.
func asPolled(cfg *config.Config, nodes []status.Node) *config.Config {
	polled := *cfg
	polled.Scheduler.Types = maps.Clone(cfg.Scheduler.Types)
	for _, n := range nodes {
		for typ, interval := range n.Intervals {
			typ = config.OfShard(typ)
			if settings, ok := polled.Scheduler.Types[typ]; ok && !n.Gone {
				settings.FixedDelay = interval
				polled.Scheduler.Types[typ] = settings
			}
		}
	}
	return &polled
}

// describer has what is worked out once for all observers: there may be thousands.
type describer struct {
	cfg    *config.Config
	report *status.Report
	types  []config.Type
	// reading are the observers that are in a reading of all rows.
	reading map[string]bool
}

// observer adds what the configuration says of an observer.
func (d describer) observer(o config.Observer, s status.Observer) status.Observer {
	s.State = cmp.Or(s.State, status.StateActive)
	s.Type, s.Source, s.Detect = o.Type, o.Source, o.Detect
	next, interval := d.nextPoll(o, s)
	s.Interval = interval
	t, ok := d.typeNamed(d.cfg.ShardOf(o))
	s.FreshnessObjective = t.FreshnessObjective(o)
	if s.Pause == nil && s.Complete {
		s.Freshness = d.report.At.Sub(s.LastOKAt) + s.Lag
	}
	switch enabled := ok && o.Enabled && t.Enabled; {
	case enabled && isPolled(d.report, t.Name, o.ID):
		s.NextPollAt = next
	case enabled && s.Pause == nil:
		s.State = status.StateUnpolled
	case !enabled && s.Pause == nil:
		s.State = status.StateDisabled
	}
	return s
}

// typeNamed returns a type that has observers.
func (d describer) typeNamed(name string) (config.Type, bool) {
	return fn.Find(d.types, func(t config.Type) bool { return t.Name == name })
}

// nameLocks names the locks of the configuration that strangers hold, and who feeds the
// sinks.
func nameLocks(cfg *config.Config, r *status.Report) {
	names := make(map[string]string)
	for _, t := range cfg.Types() {
		names[TypeLockRequest(t, "").Key] = t.LockName
	}
	names[LockRequest(cfg, JanitorLock).Key] = JanitorLock
	for _, s := range cfg.Sinks {
		names[LockRequest(cfg, SinkLock(s.ID)).Key] = SinkLock(s.ID)
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
		r.Sinks[i].Node = feeds[SinkLock(s.Sink)]
	}
}

// boundLocks notes how long each lock may be held.
func boundLocks(policies []config.LockPolicy, held []status.Lock) {
	for i, l := range held {
		for _, p := range policies {
			covers := l.Subject != "" && slices.Contains([]string{"", l.Subject}, p.Subject) &&
				slices.Contains([]string{"", l.Predicate}, p.Predicate) && slices.Contains([]string{"", l.Mode}, p.Mode)
			if covers && p.MaxHold > 0 && (held[i].MaxHold == 0 || p.MaxHold < held[i].MaxHold) {
				held[i].MaxHold = p.MaxHold
			}
		}
	}
}

// isPolled reports whether a live node polls the observer, or with an empty one the type.
func isPolled(r *status.Report, typ, observer string) bool {
	return slices.ContainsFunc(r.Nodes, func(n status.Node) bool { return n.Polls(typ, observer) })
}

// nextTurn returns the next turn of a type whose last one was that of a tick; zero where no
// live node polls it.
func nextTurn(r *status.Report, t config.Type, last time.Time) time.Time {
	if !isPolled(r, t.Name, "") {
		return time.Time{}
	}
	return schedule.NextPoll(Timed(t), "", turn.Stream{At: last}, r.At)
}

// overdue adds the types whose turn no node has taken for long, though some poll them. A turn that is
// under way has the lock, and one that does not reach a source is left to the other nodes: its
// observer says so.
func (d describer) overdue(observers map[string]status.Observer) {
	r, held := d.report, make(map[string]bool)
	for _, l := range r.Locks {
		held[l.Name] = held[l.Name] || l.Left > 0 && l.Holder != ""
	}
	last := fn.By(r.Types, func(t status.Type) string { return t.Name })
	for _, t := range d.types {
		var since time.Time // when the node began that polls it for longest
		for _, n := range r.Nodes {
			if n.Polls(t.Name, "") && (since.IsZero() || n.StartedAt.Before(since)) {
				since = n.StartedAt
			}
		}
		fails := slices.ContainsFunc(t.Observers, func(o config.Observer) bool {
			return observers[o.ID].LastError != "" && observers[o.ID].Pause == nil
		})
		_, listed := held[t.LockName]
		if since.IsZero() || held[t.LockName] || !listed && r.MoreLocks > 0 || fails {
			continue
		}
		since = slices.MaxFunc([]time.Time{since, last[t.Name].TurnAt, last[t.Name].FinishedAt}, time.Time.Compare)
		due, patience := schedule.NextPoll(Timed(t), "", turn.Stream{At: since}, since), max(status.Fresh*t.Interval, 2*t.TTL)
		_, suspended := t.NotBetween.Until(r.At)
		_, before := t.NotBetween.Until(r.At.Add(-patience))
		if r.At.Sub(due) > patience && !suspended && !before {
			r.Overdue = append(r.Overdue, status.Overdue{Type: t.Name, Since: due})
		}
	}
}

// nextPoll returns when the observer is polled next, zero while it is paused without an
// end, and the distance between its polls.
func (d describer) nextPoll(o config.Observer, s status.Observer) (next time.Time, interval time.Duration) {
	at, forEver := d.report.At, s.Pause != nil && s.Pause.Until.IsZero()
	if s.Pause != nil && !forEver {
		at = s.Pause.Until
	}
	last := turn.Stream{At: s.TurnAt, RetryAt: s.RetryAt, Failures: s.Failures, Unread: s.Lag > 0 || d.reading[o.ID]}
	next, interval = NextPoll(d.cfg, d.types, o, last, at)
	if forEver {
		next = time.Time{}
	}
	return next, interval
}
