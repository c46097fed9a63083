package events

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// outage is how long something has failed, so that an hour of it is two lines in the
// log: the first error and the end. The zero value means that it works.
type outage struct{ since time.Time }

// begin reports whether the outage is a new one.
func (o *outage) begin() bool {
	if !o.since.IsZero() {
		return false
	}
	o.since = time.Now()
	return true
}

// end reports whether an outage is over now, and how long it lasted.
func (o *outage) end() (lasted time.Duration, over bool) {
	if o.since.IsZero() {
		return 0, false
	}
	lasted = time.Since(o.since)
	o.since = time.Time{}
	return lasted, true
}

func (r *Relay) databaseFails(ctx context.Context, err error) {
	if ctx.Err() == nil && r.database.begin() {
		r.opts.Logger.Warn("Coordination database fails, relay waits", "err", err)
	}
}

func (r *Relay) databaseAnswers() {
	if lasted, over := r.database.end(); over {
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
