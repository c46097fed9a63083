// Package redisseen remembers in Redis which events a consumer has committed: a key for each,
// with a TTL. It is the fast check of package
// [github.com/observerd/observerd/guard], and decides nothing.
package redisseen

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Seen is a guard.Seen.
type Seen struct {
	client redis.UniversalClient
	prefix string
}

// New remembers events under keys that begin with the prefix, such as payments-seen. The client
// is the caller's; the user needs EXISTS and SET on these keys.
func New(client redis.UniversalClient, prefix string) *Seen { return &Seen{client, prefix + ":"} }

// Has reports whether the event was committed not long ago.
func (s *Seen) Has(ctx context.Context, id string) (bool, error) {
	n, err := s.client.Exists(ctx, s.prefix+id).Result()
	return n == 1, err
}

// Add remembers a committed event for ttl.
func (s *Seen) Add(ctx context.Context, id string, ttl time.Duration) error {
	return s.client.Set(ctx, s.prefix+id, "", ttl).Err()
}
