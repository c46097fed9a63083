package lock

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// releaseGrace limits the release of a lock that nobody wants any more.
const releaseGrace = 2 * time.Second

// GiveBack releases locks that are not wanted any more, or whose acquisition was not answered.
func GiveBack(ctx context.Context, p Provider, log *slog.Logger, grants ...Grant) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseGrace)
	defer cancel()
	for _, g := range grants {
		if err := p.Release(ctx, g); err != nil && !errors.Is(err, ErrLost) {
			log.Debug("Unanswered acquisition not given back; it ends with its TTL", "lock", g.Key, "err", err)
		}
	}
}
