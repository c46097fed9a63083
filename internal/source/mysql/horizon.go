package mysql

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// margin covers the way from the beginning of a statement, whose time its
// rows carry, to its first touch of a table, when the transaction begins.
const margin = time.Second

// Horizon implements [observer.Source]. It is exact where the account may see
// all transactions and statements (PROCESS), only this server writes, and only into
// tables of engines that show their transactions. Wherever something cannot be seen
// it is the clock less the overlap, on a replica less its delay as well; what can
// be seen is waited for all the same.
//
// Where something is open that does not tell when it began, a prepared transaction
// whose session is gone or a replica that has stopped, the horizon is empty, the
// cursor before all others: the low-water mark stays. While the server answers from
// its memory alone, the horizon stays where it was.
func (s *Source) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	a, err := s.activity(ctx)
	if err != nil {
		return observer.Horizon{}, err
	}
	p, err := s.plan(ctx, q, observer.Range{})
	if err != nil || p.selection.Timestamp < 0 {
		return observer.Horizon{}, err
	}
	h := a.horizon(q.Overlap, p.time, s.options.Location)
	h.Identity, h.Undated = a.identity, source.HasUndated(q, p.selection)
	return h, nil
}

func (a activity) horizon(overlap time.Duration, k timeKind, loc *time.Location) observer.Horizon {
	clock := a.now.Add(-a.grain)
	if a.inexact {
		clock, overlap = a.now.Add(-a.behind), source.ClockOverlap(overlap)
	}
	at, _ := source.OpenSince(clock, a.oldest, margin, overlap)
	_, earliest := source.OpenSince(clock, a.certain, margin, overlap)
	at = at.Truncate(time.Second)
	h := observer.Horizon{Lag: a.now.Sub(at), Exact: !a.inexact, Clock: k.most(a.now, loc), Now: a.now}
	if !a.held {
		h.Cursor, h.Earliest = k.least(at, loc), k.least(earliest, loc)
	}
	return h
}
