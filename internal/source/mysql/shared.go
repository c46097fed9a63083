package mysql

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// sharedActivity is what a source has read last of the open transactions of its
// server. A read keeps all sessions from reading them anew for a tenth of a second (see
// cacheAge), so the observers of a source share it, also for as long as that: whoever asks
// within it would have to wait, and a horizon that is a little older is as safe.
type sharedActivity struct {
	*source.Together[struct{}, activity]
	// last is what was read at that time, when the server showed its transactions last; zero
	// where it has not yet.
	last activity
	at   time.Time
}

// activity returns what was open at a moment after the call, or up to cacheAge before it.
func (s *Source) activity(ctx context.Context) (activity, error) {
	return s.shared.Ask(ctx, struct{}{}, func(ctx context.Context, _ []struct{}) (activity, error) {
		if time.Since(s.shared.at) < cacheAge {
			return s.shared.last, nil
		}
		a, err := inSession(ctx, s, func(c *session) (activity, error) {
			a, err := c.activity(ctx)
			c.broken = c.broken || err != nil // Its transaction may still be open.
			return a, err
		})
		if err == nil {
			s.shared.keep(&a)
		}
		return a, err
	})
}

// keep keeps a read that went well. Where the server did not show its transactions, one
// may be open since the moment when it showed them last.
func (shared *sharedActivity) keep(a *activity) {
	switch {
	case a.stale && shared.at.IsZero():
		a.held = true
	case a.stale:
		a.open(source.Earlier(shared.last.now.Add(-shared.last.grain), shared.last.oldest), false)
	case !a.held && !a.inexact:
		shared.last, shared.at = *a, time.Now()
	}
}
