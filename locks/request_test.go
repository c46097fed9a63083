package locks_test

import (
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/locks"
)

// requestOf is what the provider was asked for.
func requestOf(l *locks.Lease) lock.Request {
	return lock.Request{Key: l.Descriptor().Key(), Region: locks.DefaultRegion}
}
