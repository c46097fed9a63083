package observer

import (
	"context"
	"errors"
	"log/slog"
)

// What follows is for more rows of one timestamp than a poll has time for, as a bulk
// UPDATE leaves them. No place within a timestamp is kept between two polls, because
// rows below it may still appear. So a poll that begins with the first of them and is not
// past them when its time is over goes on until it is: the next one would get no
// further. Its statements are bounded, so that it holds no lock of the source for longer
// than others, and its commits show that it is not stuck.

// isLate reports whether the time of the poll is over and it goes on all the same.
func (t *timeline) isLate() bool { return t != nil && t.late }

// mayGoOn reports whether a poll that its time has ended is within the rows that share
// the timestamp at which it began, and can go on there.
func (t *timeline) mayGoOn(err error) bool {
	return t != nil && errors.Is(err, ErrPollTime) && !t.late && t.began != "" && t.reached.cursor == t.began && t.reached.key != ""
}

// goOn goes on where the poll was interrupted, under the same horizon. What it had
// compared and not committed counts for nothing.
func (p *poll) goOn(ctx context.Context) error {
	if err := p.revert(); err != nil {
		return err
	}
	p.timeline.late, p.timeline.from = true, p.timeline.reached
	p.comparer.seen, p.comparer.budget.changed = bitmap{}, int(p.stats.Events)
	p.outcome = unfinished
	p.log.LogAttrs(ctx, p.newsLevel(), "Poll reached poll-timeout among the rows that share the timestamp at which it began; it goes on until it has read them all",
		slog.Int64("rows", p.stats.Rows))
	return p.readOn(ctx)
}
