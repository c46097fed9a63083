package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Horizon implements [observer.Source]. It is the database's clock less the
// overlap, by default a minute: never exact.
func (s *Source) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	identity, err := s.Identity(ctx) // First: what is read is of this file, or of a later one.
	if err != nil {
		return observer.Horizon{}, err
	}
	p, err := s.session.plan(ctx, q, observer.Range{})
	if err != nil || p.selection.Timestamp < 0 {
		return observer.Horizon{}, err
	}
	overlap := source.ClockOverlap(q.Overlap)
	now, err := s.session.now(ctx)
	if err != nil {
		return observer.Horizon{}, err
	}
	w, err := s.writer(ctx, p, q)
	if err != nil {
		return observer.Horizon{}, err
	}
	return observer.Horizon{
		Cursor: w.cursor(now.Add(-overlap)),
		Lag:    overlap,
		Clock:  w.cursor(now),
		Now:    now,
		Form:   string(w.form),

		Identity: identity,
		Undated:  source.HasUndated(q, p.selection),
	}, nil
}

// CursorAt implements [observer.Source]. It is empty for a table without timestamps,
// as they have no form yet, and fails where there are some of which none can be read
// that would show the form.
func (s *Source) CursorAt(ctx context.Context, q observer.Query, at time.Time) (string, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	p, err := s.session.plan(ctx, q, observer.Range{})
	if err != nil {
		return "", err
	}
	if p.selection.Timestamp < 0 {
		return "", source.ErrNoTimestamp
	}
	w, err := s.writer(ctx, p, q)
	if cursor := w.cursor(at); err != nil || cursor != "" {
		return cursor, err
	}
	found, err := s.session.hasAny(ctx, p, "q."+source.Quote(p.selection.TimestampName())+" IS NOT NULL")
	if err != nil || !found {
		return "", err
	}
	return "", source.Unfit(fmt.Errorf("column %s has no timestamp in a known form: "+
		"correct its values, or read a query that selects them as timestamps", p.selection.TimestampName()))
}

// now asks SQLite rather than Go, so that an unreachable file shows here.
func (s session) now(ctx context.Context) (time.Time, error) {
	millis, err := column[int64](ctx, s.db, "SELECT CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)")
	if err != nil {
		return time.Time{}, s.translate(ctx, "read the clock", err)
	}
	return time.UnixMilli(millis[0]).UTC(), nil
}

// writer writes instants as the cursors of a stream.
type writer struct {
	form     form
	location *time.Location
	// layouts are those of the newest texts.
	layouts []layout
}

// writer looks how the stream writes timestamps, as far as its query does not say.
func (s *Source) writer(ctx context.Context, p plan, q observer.Query) (w writer, err error) {
	w = writer{form: formOf(q.Form), location: s.options.Location}
	if w.form == "" {
		if w.form, err = s.session.choose(ctx, p); err != nil {
			return w, err
		}
	}
	if w.form != formText {
		return w, nil
	}
	newest, err := s.session.newest(ctx, p)
	for _, text := range newest {
		l, at, ok := parseText(text, w.location)
		if !ok {
			continue
		}
		l.zoned = l.zoned && !usesZone(at, l.offset, w.location)
		if !slices.Contains(w.layouts, l) {
			w.layouts = append(w.layouts, l)
		}
	}
	return w, err
}

func (s session) newest(ctx context.Context, p plan) ([]string, error) {
	texts, err := column[string](ctx, s.db, p.sample())
	return texts, s.overRows(ctx, "read the newest timestamps", err, step{sql: p.sample()})
}

// cursor writes an instant, rounded down to what the form tells, and of texts the
// first of those that the newest would be: one of them in another zone must not hide
// the others. It is empty for no form, and if there is no text to follow.
func (w writer) cursor(at time.Time) string {
	if w.form != formText {
		return w.form.number(at)
	}
	first := ""
	for _, l := range w.layouts {
		if text := l.cursor(at, w.location); first == "" || text < first {
			first = text
		}
	}
	return first
}

// usesZone reports whether the offset that a row names is that of the configured
// zone, whose clock changes then have to be expected.
func usesZone(t time.Time, offset int, loc *time.Location) bool {
	_, local := t.In(loc).Zone()
	return local == offset
}

// cursor leaves out fractions and the zone: a text sorts after each of its own
// beginnings, so this comes before every text of the same second.
func (l layout) cursor(at time.Time, loc *time.Location) string {
	if l.zoned {
		loc = time.FixedZone("", l.offset)
	}
	wall := source.EarliestWall(at, loc)
	switch {
	case l.separator == 0:
		return wall.Format("2006-01-02")
	case !l.seconds:
		return wall.Format("2006-01-02" + string(l.separator) + "15:04")
	}
	return wall.Format("2006-01-02" + string(l.separator) + "15:04:05")
}
