package observer

import (
	"context"
	"log/slog"
	"time"
)

// ahead is how far above the source's clock a timestamp may lie. That clock is
// read before the rows, and some sources know it to the second.
const ahead = time.Minute

// noteFuture counts the rows in the source's future. They come last, but for
// rows without a timestamp.
func (c *comparer) noteFuture(rows []row) {
	if c.horizon.Clock == "" {
		return
	}
	now := c.sourceNow()
	for i := len(rows) - 1; i >= 0 && (rows[i].cursor == "" || c.isFuture(rows[i].cursor)); i-- {
		if by := rows[i].time.Sub(now); rows[i].cursor != "" && by > ahead {
			c.stats.Future++
			c.furthest = max(c.furthest, by)
		}
	}
}

// warnFuture tells of them when their number has changed since the process told it last.
func (p *poll) warnFuture(ctx context.Context) {
	rows := p.stats.Future
	if rows == 0 && p.outcome != complete || p.future.Swap(rows) == rows || rows == 0 {
		return
	}
	p.log.LogAttrs(ctx, slog.LevelWarn, "Rows lie in the source's future; is its timezone right?",
		slog.Int64("rows", rows), slog.Duration("ahead", p.comparer.furthest))
}
