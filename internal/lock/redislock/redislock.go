// Package redislock keeps locks in Redis, or Valkey, under the keys of Spring Integration's
// RedisLockRegistry: both exclude each other.
//
// A lock is the key REGION:KEY. Where one holds it alone, its value is TERM FENCE FACTS, and
// it expires with the lease. Each acquisition, renewal, release and steal is one script, so
// that nothing happens between its look and its change.
//
// Fences are the server's microseconds, or the last fence plus one: without a counter that
// lives for ever, and after a loss of all data they still grow. The last one is kept for
// five minutes after its lease.
//
// Redis replicates asynchronously: a lease that was granted or renewed just before the master
// was lost may be missing on its replica, and another gets the lock while its holder trusts
// it. The fence tells the two apart.
package redislock

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/observerd/observerd/internal/lock"
)

// minTTL is the shortest TTL: an expiry is exact to a millisecond, an answer takes some.
const minTTL = 100 * time.Millisecond

// DefaultPoolSize is how many connections to a server are open at most.
const DefaultPoolSize = 10

// dialTimeout limits a connection's start, where the context does not.
const dialTimeout = 5 * time.Second

// Options configure a provider.
type Options struct {
	// URL is redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for TLS. Open of package
	// locks/redis sets it.
	URL string
	// Password is used in the place of that in URL, unless it is empty.
	Password string
	// Nodes are HOST:PORT of further nodes of a cluster, or of further sentinels.
	Nodes []string
	// Master is the name by which sentinels know the server; URL and Nodes are those of
	// sentinels then.
	Master string
	// SentinelPassword is that of the sentinels; empty where they want none.
	SentinelPassword string
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
	// PoolSize bounds the connections to a server. 0 means [DefaultPoolSize].
	PoolSize int
	// Registerer receives the metrics; nil registers none.
	Registerer prometheus.Registerer
	// Logger receives what a person should know; nil discards it.
	Logger *slog.Logger
}

// rightsAdvice is how a user gets what a provider needs.
const rightsAdvice = "grant it by ACL SETUSER: " + ACLRule

// Provider keeps locks in Redis.
type Provider struct {
	client   redis.UniversalClient
	opts     Options
	legacies map[string]legacy
	asking   sync.WaitGroup
	untold   sync.Once // for the warning
}

// Open returns a provider. It connects when it is used. The error is of the options.
func Open(o Options) (*Provider, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.PoolSize = cmp.Or(o.PoolSize, DefaultPoolSize)
	legacies, err := o.legacies()
	if err != nil {
		return nil, err
	}
	how, err := o.client()
	if err != nil {
		return nil, err
	}
	p := &Provider{opts: o, legacies: legacies}
	switch {
	case o.Cluster:
		p.client = redis.NewClusterClient(how.Cluster())
	case o.Master != "":
		p.client = redis.NewFailoverClient(how.Failover())
	default:
		p.client = redis.NewClient(how.Simple())
	}
	hook, err := newRequests(o.Registerer)
	if err != nil {
		return nil, errors.Join(err, p.client.Close())
	}
	p.client.AddHook(hook)
	return p, nil
}

// client are the options of the client. It repeats nothing: the repetition of a release that
// was not answered would say that the lease was lost.
func (o Options) client() (*redis.UniversalOptions, error) {
	if o.Cluster && o.Master != "" {
		return nil, errors.New("a cluster has no sentinels: leave out the name of the master")
	}
	if len(o.Nodes) > 0 && !o.Cluster && o.Master == "" {
		return nil, errors.New("there are several nodes, of an unknown kind: set master for sentinels, or cluster: true")
	}
	u, err := redis.ParseURL(o.URL)
	if err != nil { // It may repeat the URL.
		return nil, errors.New("the URL is none of Redis; use redis://USER@HOST:6379/0, or rediss:// for TLS")
	}
	if u.TLSConfig != nil && o.TLS != nil {
		server := u.TLSConfig.ServerName
		u.TLSConfig = o.TLS.Clone()
		u.TLSConfig.ServerName = cmp.Or(u.TLSConfig.ServerName, server)
	}
	if u.TLSConfig != nil && (o.Cluster || o.Master != "") { // Each server has a name of its own.
		u.TLSConfig.ServerName = ""
		if o.TLS != nil {
			u.TLSConfig.ServerName = o.TLS.ServerName
		}
	}
	return &redis.UniversalOptions{
		Addrs: append([]string{u.Addr}, o.Nodes...), MasterName: o.Master, SentinelPassword: o.SentinelPassword, DB: u.DB,
		Username: u.Username, Password: cmp.Or(o.Password, u.Password), TLSConfig: u.TLSConfig,
		PoolSize: o.PoolSize, DialTimeout: dialTimeout, DialerRetries: 1, ContextTimeoutEnabled: true, MaxRetries: -1,
		Protocol: 2, DisableIdentity: true, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}, nil
}

// Capabilities implements [lock.Provider].
func (p *Provider) Capabilities() lock.Capabilities {
	c := Capabilities()
	c.Sets, c.Extender, c.Finder, c.Stealer, c.Delayer, c.Notify, c.Closer = p, p, p, p, p, p.notify, p
	if p.opts.Quiet {
		c.Notify = nil
	}
	c.MostAttempts = attemptsOf(p.opts.PoolSize)
	return c
}

// Capabilities are those of a provider, for people: none is opened.
func Capabilities() lock.Capabilities {
	var none *Provider
	return lock.Capabilities{
		Name: "redis", Modes: true, MinTTL: minTTL, MostAttempts: attemptsOf(DefaultPoolSize),
		Sets: none, Extender: none, Finder: none, Stealer: none, Delayer: none, Notify: none.notify,
	}
}

// attemptsOf leaves connections for renewals and releases.
func attemptsOf(poolSize int) int { return max(poolSize-2, 1) }

// Close closes the connections.
func (p *Provider) Close() error {
	defer p.asking.Wait()
	return p.client.Close()
}

// explained returns an error that says what to do about it, if that is known. It is
// [lock.ErrBusy] where no connection was free, [lock.ErrRefused] where the settings are wrong.
func explained(err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, redis.ErrPoolTimeout):
		return fmt.Errorf("%w: %w", lock.ErrBusy, err)
	case errors.As(err, new(*net.DNSError)), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w; does the server run, and are host and port right in url?", err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no answer in time: %w; does the server run, and are host and port right in url?", err)
	}
	for code, advice := range map[string]string{
		"READONLY":  "this server is a replica; name the master, or its sentinels",
		"CROSSSLOT": "in a cluster the locks of a set need the same {tag} in their names",
		"LOADING":   "this server reads its data; it answers soon",
		"OOM":       "the memory of this server is full; raise maxmemory, or give locks a server of their own",
		"WRONGTYPE": "another program has something else under this key; give the locks a region of their own",
	} {
		if redis.HasErrorPrefix(err, code) {
			return fmt.Errorf("%w: %s", err, advice)
		}
	}
	for code, advice := range map[string]string{
		"NOAUTH":                              "a password is missing; set password-file",
		"Protocol error: unauthenticated":     "a password is missing; set password-file",
		"WRONGPASS":                           "the user or the password is wrong; check the URL and password-file",
		"NOPERM":                              "the user may not do this; " + rightsAdvice,
		"MOVED":                               "this server is one of a cluster; set cluster: true",
		"The user executing the script can't": "the user may not do this; " + rightsAdvice,
		"ACL failure in script":               "the user may not do this; " + rightsAdvice,
		"This instance has cluster support":   "this server is not one of a cluster; leave out cluster",
	} {
		if redis.HasErrorPrefix(err, code) {
			return fmt.Errorf("%w: %w: %s", lock.ErrRefused, err, advice)
		}
	}
	return err
}

// isUnknown reports whether the server may have done what it has not answered.
func isUnknown(err error) bool {
	if errors.As(err, new(redis.Error)) || errors.Is(err, redis.ErrPoolTimeout) {
		return false
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return !ok || dial.Op != "dial"
}

func (p *Provider) giveBack(ctx context.Context, grants []lock.Grant) {
	lock.GiveBack(ctx, p, p.opts.Logger, grants...)
}
