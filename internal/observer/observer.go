package observer

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Observer polls one stream. Between two polls it remembers only what spares the source
// work and what was logged, so any node may do the next one. It is safe for
// concurrent use; of two polls at a time, one fails at its next commit.
type Observer struct {
	spec       Spec
	log        *slog.Logger
	identities identityHistory
	// tried is when a full read above a standing horizon was begun last.
	tried atomic.Pointer[time.Time]
	// future is how many rows in the source's future the last warning counted.
	future atomic.Int64
	// rate is nil without a bound.
	rate *rate.Limiter
}

// New returns an observer, or every mistake in its description at once.
func New(spec Spec) (*Observer, error) {
	spec = spec.withDefaults()
	if err := spec.validate(); err != nil {
		return nil, fmt.Errorf("observer %q: %w", spec.Stream, err)
	}
	o := &Observer{spec: spec, log: spec.Logger.With("stream", spec.Stream)}
	if spec.MaxRate > 0 {
		o.rate = rate.NewLimiter(rate.Limit(spec.MaxRate), spec.ChunkRows)
	}
	return o, nil
}
