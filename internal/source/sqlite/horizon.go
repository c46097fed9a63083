package sqlite

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// defaultOverlap is the distance to the clock when none is configured.
const defaultOverlap = time.Minute

// Horizon implements [observer.Source]. It is the database's clock less the
// overlap, by default a minute: never exact.
func (s *Source) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	p, err := s.plan(ctx, s.db, q, observer.Range{})
	if err != nil || p.selection.Timestamp < 0 {
		return observer.Horizon{}, err
	}
	overlap := q.Overlap
	if overlap <= 0 {
		overlap = defaultOverlap
	}
	now, err := s.now(ctx)
	if err != nil {
		return observer.Horizon{}, err
	}
	newest, err := s.newest(ctx, p)
	if err != nil {
		return observer.Horizon{}, err
	}
	return observer.Horizon{
		Cursor: horizonCursor(newest, now.Add(-overlap), s.options.Location),
		Lag:    overlap,
		Clock:  horizonCursor(newest, now, s.options.Location),
		Now:    now,
	}, nil
}

// CursorAt implements [observer.Source]. It is empty for a table whose
// timestamps have no form yet, because it has no rows.
func (s *Source) CursorAt(ctx context.Context, q observer.Query, at time.Time) (string, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	p, err := s.plan(ctx, s.db, q, observer.Range{})
	if err != nil {
		return "", err
	}
	if p.selection.Timestamp < 0 {
		return "", source.ErrNoTimestamp
	}
	newest, err := s.newest(ctx, p)
	if err != nil {
		return "", err
	}
	return horizonCursor(newest, at, s.options.Location), nil
}

// now asks SQLite rather than Go, so that an unreachable file shows here.
func (s *Source) now(ctx context.Context) (time.Time, error) {
	var millis int64
	err := each(ctx, s.db, "SELECT CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)", nil, func(rows *sql.Rows) error {
		return rows.Scan(&millis)
	})
	return time.UnixMilli(millis).UTC(), s.translate(ctx, "read the clock", err)
}

func (s *Source) newest(ctx context.Context, p plan) ([]any, error) {
	var values []any
	err := each(ctx, s.db, p.sample(), nil, func(rows *sql.Rows) error {
		var value any
		err := rows.Scan(&value)
		values = append(values, value)
		return err
	})
	return values, s.overRows(ctx, s.db, "read the newest timestamps", err, step{sql: p.sample()})
}

// horizonCursor writes an instant in the form of the newest timestamps, rounded
// down to what each of them tells. It is empty when none of them is readable.
func horizonCursor(newest []any, at time.Time, loc *time.Location) string {
	var f form
	for _, value := range newest {
		other, t, ok := parseValue(value, loc)
		switch {
		case !ok || f.kind != 0 && f.kind != other.kind:
			continue
		case f.kind == 0:
			f = other
			f.zoned = f.zoned && !usesZone(t, f.offset, loc)
		default:
			f = f.coarser(other)
		}
	}
	return f.cursor(at, loc)
}

// usesZone tells whether the offset that a row names is that of the configured
// zone, whose clock changes then have to be expected.
func usesZone(t time.Time, offset int, loc *time.Location) bool {
	_, local := t.In(loc).Zone()
	return local == offset
}

// coarser returns the form whose texts come first among equal times.
func (f form) coarser(other form) form {
	if other.separator < f.separator {
		f.separator = other.separator
	}
	f.seconds = f.seconds && other.seconds
	return f
}

func (f form) cursor(at time.Time, loc *time.Location) string {
	switch f.kind {
	case formText:
		return f.textCursor(at, loc)
	case formEpoch:
		return strconv.FormatInt(f.toEpoch(at), 10)
	case formReal:
		return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', -1, 64)
	case formJulian:
		day := float64(at.UnixMilli())/1000/daySeconds + julianEpoch
		return strconv.FormatFloat(day, 'f', -1, 64)
	}
	return ""
}

func (f form) toEpoch(at time.Time) int64 {
	switch f.unit {
	case time.Second:
		return at.Unix()
	case time.Millisecond:
		return at.UnixMilli()
	case time.Microsecond:
		return at.UnixMicro()
	}
	return at.UnixNano()
}

// textCursor leaves out fractions and the zone: a text sorts after each of its
// own beginnings, so this comes before every text of the same second.
func (f form) textCursor(at time.Time, loc *time.Location) string {
	if f.zoned {
		loc = time.FixedZone("", f.offset)
	}
	wall := source.EarliestWall(at, loc)
	switch {
	case f.separator == 0:
		return wall.Format("2006-01-02")
	case !f.seconds:
		return wall.Format("2006-01-02" + string(f.separator) + "15:04")
	}
	return wall.Format("2006-01-02" + string(f.separator) + "15:04:05")
}
