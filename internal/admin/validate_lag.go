package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/wiring"
)

const (
	// businessLag is how far the newest value of a timestamp is behind the source's
	// clock from which it looks like a business date, if nothing keeps it.
	businessLag  = businessDays * 24 * time.Hour
	businessDays = 30
	// lagTime bounds the look for newer rows: without an index the source reads all.
	lagTime = 5 * time.Second
)

// judgeLag warns of a timestamp that nothing keeps, and that lags far behind.
func (c *ObserverCheck) judgeLag(ctx context.Context, src source.Database, d source.Description) {
	if d.Timestamp == "" || d.TimestampKept != source.No || d.TimestampDate || !mayHide(c.observer) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lagTime)
	defer cancel()
	q := wiring.Query(c.observer)
	q.Columns, q.NullTimestamp = q.Key, observer.NullSkip
	// What fails here fails in polls, too, and the sample has read the same; it may only
	// take too long, or there is no timestamp that is understood.
	late, err := isLate(ctx, src, q)
	if err != nil || !late {
		return
	}
	j := judgement{subject: "observer " + c.ID}
	j.warn("timestamp %s looks like a business date: no default, trigger or index is seen that would keep it, and its newest value "+
		"is more than %d days behind the source's clock; "+hides, d.Timestamp, businessDays)
	c.findings = append(c.findings, j.findings...)
}

// isLate reports whether there are rows with a timestamp, and none that is new.
func isLate(ctx context.Context, src source.Database, q observer.Query) (bool, error) {
	h, err := src.Horizon(ctx, q)
	if err != nil {
		return false, err
	}
	q.Form = h.Form
	now := h.Now
	if now.IsZero() {
		now = time.Now()
	}
	from, err := src.CursorAt(ctx, q, now.Add(-businessLag))
	if err != nil {
		return false, err
	}
	if recent, err := hasRows(ctx, src, q, from); recent || err != nil {
		return false, err
	}
	return hasRows(ctx, src, q, "")
}

// hasRows reports whether there is a row from that timestamp on.
func hasRows(ctx context.Context, src source.Database, q observer.Query, from string) (has bool, err error) {
	rows, err := src.Read(ctx, q, observer.Range{Part: observer.PartDated, From: from, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("look for new rows: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return rows.Next(), rows.Err()
}
