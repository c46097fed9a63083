package observer

import (
	"context"
	"log/slog"
	"time"
)

// ahead is how far above the source's clock a timestamp may lie. That clock is
// read before the rows, and some sources know it to the second.
const ahead = time.Minute

// instant is the instant of a row's timestamp. Where the clocks of its zone go back, one
// reading has two instants: the later counts, unless that lies in the source's future.
func (in *input) instant(of time.Time) time.Time {
	earlier, later := instants(of)
	if earlier.Equal(later) || !later.After(in.latest()) {
		return later
	}
	return earlier
}

// latest is the instant after which a row lies in the source's future. The source's clock
// has gone on since the horizon was read.
func (in *input) latest() time.Time { return in.sourceNow().Add(ahead + time.Since(in.horizonAt)) }

// instants are the earliest and the latest instant with the reading of t in its zone.
// Package time returns either for a reading.
func instants(t time.Time) (earlier, later time.Time) {
	earlier, later = t, t
	if t.Location() == time.UTC {
		return earlier, later
	}
	start, end := t.ZoneBounds()
	if other := sameReading(t, start.Add(-1)); !start.IsZero() && other.Before(start) {
		earlier = other
	}
	if other := sameReading(t, end); !end.IsZero() && !other.Before(end) {
		later = other
	}
	return earlier, later
}

// sameReading is when clocks with the offset that their zone has at another time show the
// reading of t.
func sameReading(t, other time.Time) time.Time {
	_, offset := t.Zone()
	_, then := other.Zone()
	return t.Add(time.Duration(offset-then) * time.Second)
}

// noteFuture counts the rows in the source's future. They come last, but for
// rows without a timestamp.
func (j *journal) noteFuture(rows []row) {
	if j.horizon.Clock == "" {
		return
	}
	latest := j.latest()
	for i := len(rows) - 1; i >= 0 && (rows[i].cursor == "" || j.isFuture(rows[i].cursor)); i-- {
		if rows[i].cursor != "" && rows[i].time.After(latest) {
			j.stats.Future++
			j.furthest = max(j.furthest, rows[i].time.Sub(j.sourceNow()))
		}
	}
}

// warnFuture tells of them when their number has changed since the process told it last.
// done says that all rows were read.
func (j *journal) warnFuture(ctx context.Context, done bool) {
	rows := j.stats.Future
	if rows == 0 && !done || j.future.Swap(rows) == rows || rows == 0 {
		return
	}
	j.log.LogAttrs(ctx, slog.LevelWarn, "Rows lie in the source's future; is its timezone right?",
		slog.Int64("rows", rows), slog.Duration("ahead", j.furthest))
}
