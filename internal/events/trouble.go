package events

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// trouble remembers whether something was reported as failing, so that an
// outage of an hour is two lines in the log: its first error and its end.
type trouble struct{ since time.Time }

// begins reports whether the fault is a new one.
func (t *trouble) begins() bool {
	if !t.since.IsZero() {
		return false
	}
	t.since = time.Now()
	return true
}

// ends reports whether a fault is over, and how long it lasted.
func (t *trouble) ends() (time.Duration, bool) {
	if t.since.IsZero() {
		return 0, false
	}
	lasted := time.Since(t.since)
	t.since = time.Time{}
	return lasted, true
}

func (r *Relay) databaseFails(ctx context.Context, err error) {
	if ctx.Err() == nil && r.database.begins() {
		r.opts.Logger.Warn("Coordination database fails, relay waits", "err", err)
	}
}

func (r *Relay) databaseAnswers() {
	if lasted, over := r.database.ends(); over {
		r.opts.Logger.Info("Coordination database answers again", "after", lasted)
	}
}

// newBackoff paces repeats: about 0.25 s at first and 15 s at most, give or
// take half.
func newBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 250 * time.Millisecond
	b.Multiplier = 2
	b.MaxInterval = 15 * time.Second
	b.Reset()
	return b
}
