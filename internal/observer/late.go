package observer

import (
	"context"
	"errors"
	"log/slog"
)

// What follows is for more rows of one timestamp than a poll has time for, as a bulk
// UPDATE leaves them. No place within a timestamp is kept from one poll to the next:
// rows below it may still appear, and only the mark and what was observed say which.
// So a poll that has to begin with the first of them, and is not past them when its
// time is over, goes on until it is: the next one would be where this one was. Its
// statements are bounded, so that it holds no lock of the source for longer than
// others do, and it commits, so that nobody takes it for stuck.

// settled notes the place of the last row that was compared and committed.
func (p *poll) settled(r *reader, rows []row) {
	if p.spec.readsAll() {
		return
	}
	for i := range rows {
		switch row := &rows[i]; {
		case row.cursor == "":
		case row.cursor != p.reached.cursor || row.key != "":
			p.reached = r.at(row.cursor, row.key)
		}
	}
}

// isPast reports whether the poll has come past the rows that share the timestamp at
// which it began.
func (p *poll) isPast() bool { return p.src.Compare(p.reached.cursor, p.began) > 0 }

// mayGoOn reports whether a poll that its time has ended is within the rows that share
// the timestamp at which it began, and can go on there.
func (p *poll) mayGoOn(err error) bool {
	return errors.Is(err, ErrPollTime) && !p.late && p.began != "" && p.reached.cursor == p.began && p.reached.key != ""
}

// goOn returns a poll that goes on where this one was interrupted, under the same
// horizon. What it had compared and not committed counts for nothing.
func (p *poll) goOn(ctx context.Context) (*poll, error) {
	next := p.begin(p.src, p.st)
	if err := next.follow(p.cursor); err != nil {
		return p, err
	}
	next.at, next.start, next.horizon, next.light = p.at, p.start, p.horizon, p.light
	next.next.identity, next.next.columns, next.next.definition = p.next.identity, p.next.columns, p.next.definition
	next.late, next.began, next.from, next.reached = true, p.began, p.reached, p.reached
	next.limit, next.partRows, next.apart, next.most = p.limit, p.partRows, p.apart, p.most
	next.stats, next.changed, next.lastTime, next.furthest = p.stats, int(p.stats.Events), p.lastTime, p.furthest
	p.spec.Logger.LogAttrs(ctx, slog.LevelInfo,
		"Poll reached poll-timeout among the rows that share the timestamp at which it began; it goes on until it has read them all",
		slog.String("stream", p.spec.Stream), slog.Int64("rows", p.stats.Rows))
	return next, nil
}
