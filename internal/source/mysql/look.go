package mysql

import (
	"context"
	"time"
)

// sharedLook is a look of a source at the open transactions of its server. Each
// takes a tenth of a second, during which nobody else may look (see cacheAge),
// so the observers of a source share them.
type sharedLook struct {
	turn chan struct{} // holds one token; guards what follows
	// began is when the latest look that went well did.
	began  time.Time
	latest activity
	// seen is when the latest look began that was not stale, or the source was
	// opened.
	seen time.Time
}

func newLook() sharedLook { return sharedLook{turn: make(chan struct{}, 1), seen: time.Now()} }

// activity returns what was seen at a moment after the call. A look that began
// while the caller was waiting is as good as one of its own.
func (s *Source) activity(ctx context.Context, r relation) (activity, error) {
	asked := time.Now()
	select {
	case s.looking.turn <- struct{}{}:
		defer func() { <-s.looking.turn }()
	case <-ctx.Done():
		return activity{}, cause(ctx, "read open transactions")
	}
	if !s.looking.began.After(asked) {
		began := time.Now()
		a, err := s.look(ctx)
		if err != nil {
			return activity{}, err
		}
		if !a.stale {
			s.looking.seen = began
		}
		a.unseen = began.Sub(s.looking.seen)
		s.looking.began, s.looking.latest = began, a
	}
	return s.looking.latest.of(r), nil
}

func (s *Source) look(ctx context.Context) (a activity, err error) {
	err = s.session(ctx, func(ctx context.Context, c *session) (err error) {
		if a, err = c.activity(ctx); err != nil {
			c.broken = true // Its transaction may still be open.
		}
		return err
	})
	return a, err
}
