package lock

import (
	"errors"
	"fmt"
	"time"
)

// The margin lies between the end of the trust in a lease and the moment another node
// may take it: clocks run at different speeds, and timers fire late.
const (
	minMargin = 100 * time.Millisecond
	maxMargin = 2 * time.Second
)

// trust returns how long a lease of that TTL may be trusted from the moment at which the attempt to
// acquire or renew it began: the TTL less a tenth, at least 100 ms and at most 2 s, but
// never more than half of the TTL.
func trust(ttl time.Duration) time.Duration {
	margin := min(max(ttl/10, minMargin), maxMargin)
	return ttl - min(margin, ttl/2)
}

// validate returns an error for a request that no provider can serve.
func (r Request) validate() error {
	switch {
	case r.Key == "" || r.Region == "":
		return errors.New("a lock needs a key and a region")
	case r.TTL <= 0:
		return fmt.Errorf("TTL %s of lock %s is not positive", r.TTL, r.Key)
	}
	return nil
}

// String returns the renewal's name in metrics.
func (r Renewal) String() string {
	switch r {
	case Renewed:
		return "renewed"
	case Lost:
		return "lost"
	}
	return "unknown"
}
