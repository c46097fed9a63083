// Package redis opens Redis, or Valkey, as a provider of package
// [github.com/observerd/observerd/locks]. Its locks are those of Spring Integration's
// RedisLockRegistry: the region of the manager is the key of the registry.
package redis

import (
	"context"

	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/locks"
)

// Options configure a provider.
type Options = redislock.Options

// Open returns a provider of the locks at redis://USER:PASSWORD@HOST:PORT/DATABASE, or
// rediss:// for TLS, of Redis 7.0 or Valkey 7.2 and later. It connects when a lock is
// acquired. The error is of the URL or the options, and repeats no password. Hand the
// provider to [locks.Open], which closes it if it fails, as its manager does at its end.
func Open(_ context.Context, url string, o Options) (locks.Provider, error) {
	o.URL = url
	return redislock.Open(o)
}
