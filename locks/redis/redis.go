// Package redis opens Redis, or Valkey, as a provider of package
// [github.com/observerd/observerd/locks]. Its locks are those of Spring Integration's
// RedisLockRegistry: the region of the manager is the key of the registry.
package redis

import (
	"context"
	"crypto/tls"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/locks"
)

// Options configure a provider.
type Options struct {
	// Password is used in the place of that in the URL, unless it is empty.
	Password string
	// Nodes are HOST:PORT of further nodes of a cluster, or of further sentinels.
	Nodes []string
	// Master is the name by which sentinels know the server; the URL and Nodes are those of
	// sentinels then.
	Master string
	// Cluster says that the servers are a cluster.
	Cluster bool
	// TLS is used with rediss://. Nil trusts what the system trusts.
	TLS *tls.Config
	// Quiet sends no message at a release. Clients that wait for one, as a registry of
	// Spring with PUB_SUB_LOCK, then notice a release late.
	Quiet bool
	// Legacy are keys of an older system, by SUBJECT/PREDICATE, in which {1} is the first
	// resource: both keys are taken and released. Not in a cluster.
	Legacy map[string]string
	// PoolSize bounds the connections to a server. 0 means 10.
	PoolSize int
	// Registerer receives the count of requests; nil registers none.
	Registerer prometheus.Registerer
	// Logger receives what a person should know of the servers; nil discards it.
	Logger *slog.Logger
}

// Open returns a provider of the locks at redis://USER:PASSWORD@HOST:PORT/DATABASE, or
// rediss:// for TLS, of Redis 7.0 or Valkey 7.2 and later. It connects when a lock is
// acquired. The error is of the URL or the options, and repeats no password. Hand the
// provider to [locks.Open], which closes it if it fails, as its manager does at its end.
func Open(_ context.Context, url string, o Options) (locks.Provider, error) {
	return redislock.Open(redislock.Options{
		URL: url, Password: o.Password, Nodes: o.Nodes, Master: o.Master, Cluster: o.Cluster, TLS: o.TLS, Quiet: o.Quiet,
		Legacy: o.Legacy, PoolSize: o.PoolSize, Registerer: o.Registerer, Logger: o.Logger,
	})
}
