package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// activity is what the server says of its open transactions.
type activity struct {
	now              time.Time
	oldest           time.Time // zero when no transaction is open
	youngest         time.Time
	hidden, untraced int64
	prepared         time.Time // zero without two-phase transactions
	replica          bool
	replayed         time.Time // of a replica; zero when nothing was replayed
	tracking         bool
	// others bring rows whose transactions are not among these.
	others others
}

// Horizon implements [observer.Source]. It is exact where every session of the
// database can be seen, and no others bring what is read, see others. Otherwise,
// on a replica, and where track_activities is off, it is the clock less the
// overlap, on a replica less its delay as well. Transactions that can be seen
// are waited for all the same, but on a replica, where no session writes.
//
// A prepared (two-phase) transaction has a time of preparation, but none of its
// start, so the horizon then is empty, the cursor before all others: the
// low-water mark stays where it was when that transaction was still visible.
func (s *Source) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	if err := source.CheckQuery(q); err != nil {
		return observer.Horizon{}, source.Unfit(err)
	}
	l, err := s.look(ctx, q)
	if err != nil {
		return observer.Horizon{}, err
	}
	p, others, err := s.planAfter(ctx, q, l)
	if err != nil || p.selection.Timestamp < 0 {
		return observer.Horizon{}, err
	}
	l.others = others
	h := l.horizon(q.Overlap, p.time, s.options.Location)
	h.Clock, h.Now = p.time.Horizon(l.now, s.options.Location), l.now
	h.Identity, h.Undated = l.identity, source.HasUndated(q, p.selection)
	return h, nil
}

// planAfter plans a read after a look, and returns what else brings its rows.
func (s *Source) planAfter(ctx context.Context, q observer.Query, l look) (p plan, besides others, err error) {
	r, known := s.relations.unchanged(q.Table, l)
	if known && r.fixed() {
		if p, err := newPlan(r, q); err == nil {
			return p, r.ownOthers(), nil
		}
	}
	p, err = inSession(ctx, s, func(c *session) (p plan, err error) {
		just := seen{at: time.Now()}
		if known || l.stamps[parseTable(q.Table)] == "" {
			p, err = c.plan(ctx, q, observer.Range{})
		} else {
			p, err = c.planAndKeep(ctx, q)
		}
		if err == nil && p.selection.Timestamp >= 0 {
			besides, just.tables, err = c.others(ctx, p)
		}
		s.see(q, just)
		return p, err
	})
	return p, besides, err
}

// planAndKeep looks a table up behind a look in the same session: of several hosts another may be
// behind.
func (c *session) planAndKeep(ctx context.Context, q observer.Query) (plan, error) {
	l, err := c.look(ctx, []tableName{parseTable(q.Table)}, behindSQL)
	if err != nil {
		return plan{}, err
	}
	p, err := c.plan(ctx, q, observer.Range{})
	if err == nil {
		p.relation.transparent, err = c.seesThrough(ctx, p.relation)
	}
	if err == nil {
		c.source.relations.keep(q.Table, l, p.relation)
	}
	return p, err
}

func activityOf(r [][]byte) activity {
	return activity{
		now:      instant(r[0]),
		oldest:   instant(r[1]),
		hidden:   count(r[2]),
		untraced: count(r[3]),
		prepared: instant(r[4]),
		youngest: instant(r[5]),
		replica:  yes(r[6]),
		replayed: instant(r[7]),
		tracking: string(r[8]) == "on",
	}
}

func instant(text []byte) time.Time {
	if text == nil {
		return time.Time{}
	}
	return time.UnixMicro(count(text)).UTC()
}

func count(text []byte) int64 {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 1 // Unreadable is not "none": the horizon is not exact then.
	}
	return n
}

// exact reports whether every open transaction was seen that may write what is
// read.
func (a activity) exact() bool {
	return a.hidden == 0 && a.untraced == 0 && a.tracking && !a.replica && a.others == others{}
}

// held reports whether something is open, or not yet replayed, and
// does not show when it began. A transaction that began later than now was open when
// the clock went back, and may have written at any time since then.
func (a activity) held() bool {
	return !a.prepared.IsZero() || a.youngest.Sub(a.now) > margin || a.replica && a.replayed.IsZero()
}

func (a activity) horizon(overlap time.Duration, k timeKind, loc *time.Location) observer.Horizon {
	exact := a.exact()
	clock, oldest := a.now, a.oldest
	if a.replica {
		clock, oldest = source.Earlier(a.now, a.replayed), time.Time{} // No session writes here.
	}
	if !exact {
		overlap = source.ClockOverlap(overlap)
	}
	at, earliest := source.OpenSince(clock, oldest, margin, overlap)
	if a.held() {
		return observer.Horizon{Lag: a.now.Sub(source.Earlier(at, a.prepared)), Exact: exact}
	}
	return observer.Horizon{Cursor: k.Horizon(at, loc), Earliest: k.Horizon(earliest, loc), Lag: a.now.Sub(at), Exact: exact}
}

// warnings says why the horizon is not exact, and what would make it so.
func (a activity) warnings() []string {
	var w []string
	if a.hidden > 0 {
		w = append(w, "Sessions of other roles are hidden, so the horizon is the clock less the overlap. GRANT pg_read_all_stats to the role that reads.")
	}
	if !a.tracking || a.untraced > 0 {
		w = append(w, "track_activities is off, so open transactions cannot be seen and the horizon is the clock less the overlap.")
	}
	if a.replica {
		w = append(w, "This is a replica, which does not know the open transactions of its primary: the horizon is what was replayed, less the overlap.")
	}
	w = append(w, a.others.warnings()...)
	if !a.prepared.IsZero() {
		w = append(w, "A prepared (two-phase) transaction is open; the low-water mark does not move until it ends.")
	}
	return w
}
