package mysql

import (
	"context"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

const (
	// margin covers the way from the beginning of a statement, whose time its
	// rows carry, to its first touch of a table, when the transaction begins.
	margin = time.Second
	// holdStale is for how long the mark waits for the server to show its
	// transactions, before the horizon is the clock less the overlap.
	holdStale = time.Minute
)

// Horizon implements [observer.Source]. It is exact where the account may see
// all transactions and statements (PROCESS) and only this server writes. On a
// replica, in a cluster, and where something cannot be seen, it is the clock
// less the overlap, on a replica less its delay as well.
//
// Where something is open that does not tell when it began, a prepared
// transaction whose session is gone or a replica that has stopped, the horizon
// is empty, the cursor before all others: the low-water mark stays. It is empty
// as well while the transactions cannot be seen for less than a minute.
// Transactions that innodb_trx shows are waited for in any case.
func (s *Source) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	p, err := s.plan(ctx, q, observer.Range{})
	if err != nil || p.selection.Timestamp < 0 {
		return observer.Horizon{}, err
	}
	a, err := s.activity(ctx, p.relation)
	if err != nil {
		return observer.Horizon{}, err
	}
	h := a.horizon(q.Overlap, p.time, s.options.Location)
	h.Undated = source.HasUndated(q, p.selection)
	return h, nil
}

// exact reports whether everything that may still write was seen.
func (a activity) exact() bool {
	return !a.hidden && !a.stale && !a.foreign && a.engine == "" && !a.replica && !a.cluster
}

// brieflyStale reports whether the transactions have not been seen for a moment only,
// and will probably be seen in another.
func (a activity) brieflyStale() bool { return a.stale && a.staleFor < holdStale }

func (a activity) horizon(overlap time.Duration, k timeKind, loc *time.Location) observer.Horizon {
	exact := a.exact()
	clock := a.now.Add(-a.grain)
	if !exact {
		clock, overlap = a.now.Add(-max(a.behind, 0)), source.ClockOverlap(overlap)
	}
	at, earliest := source.OpenSince(clock, a.oldest, margin, overlap)
	if a.stale { // What was settled before stays so, or to see nothing any more would seem a time that has gone back.
		earliest = a.now
	}
	at = at.Truncate(time.Second)
	h := observer.Horizon{Lag: a.now.Sub(at), Exact: exact, Clock: k.most(a.now, loc), Now: a.now}
	if !a.held && !a.brieflyStale() && a.behind >= 0 {
		h.Cursor, h.Earliest = k.least(at, loc), k.least(earliest, loc)
	}
	return h
}

// warnings says why the horizon is not exact, and what would make it so.
func (a activity) warnings() []string {
	var w []string
	for _, one := range []struct {
		applies bool
		text    string
	}{
		{a.hidden, "Transactions of other accounts are hidden, so the horizon is the clock less the overlap. GRANT PROCESS ON *.* to the account that reads."},
		{a.brieflyStale(), "The server does not show new transactions just now, as something else asks for innodb_trx all the time, so the low-water mark does not move for up to a minute."},
		{a.stale && !a.brieflyStale(), "Something asks for innodb_trx more than ten times a second, or too many nodes do, so the server does not show new transactions and the horizon is the clock less the overlap."},
		{a.foreign, "The table's engine does not show its transactions, so the horizon is the clock less the overlap."},
		{a.engine != "", fmt.Sprintf("The server has the engine %s, which does not show its transactions, and whether a table behind this view or query is of it is not known: the horizon is the clock less the overlap.", a.engine)},
		{a.cluster, "Other servers of a cluster write too, and their transactions cannot be seen here: the horizon is the clock less the overlap."},
		{a.silent, "This is a replica, or read-only, and how far it is behind is hidden: the horizon is the clock less the overlap, which has to be longer than the greatest delay. GRANT SLAVE MONITOR (MariaDB) or REPLICATION CLIENT (MySQL) ON *.* to the account that reads."},
		{a.replica && !a.silent && a.behind >= 0, "This is a replica, which does not know the open transactions of its primary: the horizon is the clock less its delay and the overlap."},
		{a.replica && a.behind < 0, "This is a replica that has stopped; the low-water mark does not move until it goes on."},
		{a.held, "A prepared (two-phase) transaction was left open; the low-water mark does not move until it ends."},
	} {
		if one.applies {
			w = append(w, one.text)
		}
	}
	return w
}
