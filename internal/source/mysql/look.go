package mysql

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// sharedLook is a look of a source at the open transactions of its server. Each
// takes a tenth of a second, during which nobody else may look (see cacheAge),
// so the observers of a source share them.
type sharedLook struct {
	turn chan struct{} // holds one token; guards what follows
	// began is when the latest look that went well did.
	began  time.Time
	latest activity
	// blind is when the first of the latest looks began that were stale; zero
	// when the latest was not.
	blind time.Time
}

func newLook() sharedLook { return sharedLook{turn: make(chan struct{}, 1)} }

// activity returns what was seen at a moment after the call. A look that began
// while the caller was waiting is as good as one of its own.
func (s *Source) activity(ctx context.Context, r relation) (activity, error) {
	asked := time.Now()
	select {
	case s.looking.turn <- struct{}{}:
		defer func() { <-s.looking.turn }()
	case <-ctx.Done():
		return activity{}, source.Ended(ctx, "read open transactions")
	}
	if !s.looking.began.After(asked) {
		began := time.Now()
		a, err := s.look(ctx)
		if err != nil {
			return activity{}, err
		}
		s.looking.note(a, began)
	}
	return s.looking.latest.of(r), nil
}

// note keeps a look that went well.
func (l *sharedLook) note(a activity, began time.Time) {
	switch {
	case !a.stale:
		l.blind = time.Time{}
	case l.blind.IsZero():
		l.blind = began
	}
	if a.stale {
		a.unseen = began.Sub(l.blind)
	}
	l.began, l.latest = began, a
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
