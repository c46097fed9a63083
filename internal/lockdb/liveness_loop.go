package lockdb

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

const livenessLoop = "liveness"

func (l *Liveness) run(ctx context.Context) {
	defer l.opts.Beat(livenessLoop, 0)
	defer l.settle()
	defer l.depart(ctx)
	for l.appear(ctx) {
		err := l.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		l.disappeared()
		if errors.Is(err, errNoLiveness) {
			l.switchOff(ctx, err)
			return
		}
		l.comeBack(ctx, err)
	}
}

const (
	// longestRest bounds the rest before this node comes back.
	longestRest = 5 * time.Second
	// lasting is how long a session must have been there to count as one that
	// something has ended, not as one that could not be.
	lasting = 5 * time.Second
)

// comeBack prepares for the next session. After the first that did not last, it
// rests: what ends sessions at once is not fixed by having more of them.
func (l *Liveness) comeBack(ctx context.Context, cause error) {
	if !l.p.lasts() {
		l.vanish(ctx)
	}
	level := slog.LevelInfo
	if time.Since(l.appeared) >= lasting {
		l.short = 0
	} else if l.short++; l.short > 1 {
		level = slog.LevelDebug
	}
	l.opts.Logger.Log(ctx, level, "Others cannot see this node; coming back", "err", cause)
	for rest := min(l.opts.Every<<min(l.short, 8)/2, longestRest); l.short > 0 && rest > 0; rest -= l.opts.Every {
		l.opts.Beat(livenessLoop, time.Minute)
		l.signOfLife()
		if !pause(ctx, min(rest, l.opts.Every)) {
			return
		}
	}
}

// depart ends all that others see of us.
func (l *Liveness) depart(ctx context.Context) {
	l.news.blind()
	l.vanish(ctx)
}

func (l *Liveness) vanish(ctx context.Context) {
	if err := l.attempt(context.WithoutCancel(ctx), 2*l.opts.Every, l.p.vanish); err != nil {
		l.opts.Logger.Warn("Sign of life not taken back", "err", err)
	}
}

// appear tries until others can see us; false when ctx ended, or it is
// hopeless.
func (l *Liveness) appear(ctx context.Context) bool {
	for {
		err := l.attempt(ctx, 0, l.p.appear)
		switch {
		case err == nil:
			l.appeared, l.told = time.Now(), false
			l.judge.reset()
			l.judged = true
			l.db.showBy(l.p.kind())
			l.db.metrics.liveness.Set(1)
			l.opts.Logger.Debug("Others can see this node", "by", l.p.kind())
			l.settle()
			return true
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errNoLiveness):
			l.settle()
			l.switchOff(ctx, err)
			return false
		}
		l.unseen(ctx, err)
		l.settle()
		if !pause(ctx, l.opts.Every) {
			return false
		}
	}
}

// unseen is one more attempt that failed.
func (l *Liveness) unseen(ctx context.Context, err error) {
	if !l.told {
		l.told = true
		l.opts.Logger.Warn("Others cannot see this node; its leases live by renewals and their TTL", "err", err)
	}
	if l.judged && time.Since(l.lost) > l.opts.Patience {
		l.withdraw(ctx)
	}
}

// withdraw lets nobody judge us any more, and so ends the need for signs of
// life; false when that could not be noted. New leases are not judged in any
// case.
func (l *Liveness) withdraw(ctx context.Context) bool {
	l.db.showBy("")
	l.judged = l.judged && !l.mark(ctx, "")
	return !l.judged
}

func (l *Liveness) disappeared() {
	l.lost = time.Now()
	l.news.blind()
	l.db.metrics.liveness.Set(0)
}

// switchOff lets this node neither be judged nor judge.
func (l *Liveness) switchOff(ctx context.Context, err error) {
	l.opts.Logger.Warn("Liveness is switched off: the death of this node is not seen by others, and the TTL rules", "err", err)
	l.judged = true // an earlier session may have left rows that say so
	withdrawn := l.withdraw(ctx)
	l.vanish(ctx)
	for !withdrawn && pause(ctx, l.opts.Every) {
		l.signOfLife()
		withdrawn = l.withdraw(ctx)
	}
}

// watch looks until a look fails.
func (l *Liveness) watch(ctx context.Context) error {
	for {
		if err := l.look(ctx); err != nil {
			return err
		}
		if !pause(ctx, l.untilNext()) {
			return context.Cause(ctx)
		}
	}
}

// untilNext is the time to the next look: earlier than usual if somebody can
// be judged then.
func (l *Liveness) untilNext() time.Duration {
	now := time.Now()
	if at, ok := l.judge.next(now); ok {
		return min(l.opts.Every, at.Sub(now))
	}
	return l.opts.Every
}

// attempt runs one call within its time. When it takes longer than the given
// patience, others may have lost sight of us: signs of life stand in for it.
func (l *Liveness) attempt(ctx context.Context, patience time.Duration, call func(ctx context.Context) error) error {
	l.opts.Beat(livenessLoop, time.Minute)
	limited, cancel := context.WithTimeout(ctx, livenessTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(limited) }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-timer.C:
			l.signOfLife()
			timer.Reset(l.opts.Every)
		}
	}
}

// signOfLife renews the leases of a node that others judge and cannot see.
func (l *Liveness) signOfLife() {
	if l.judged && !l.p.lasts() {
		l.opts.SignOfLife()
	}
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
