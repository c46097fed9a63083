package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/kind"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/lockkind"
)

// Kind is the kind of lock provider that is of type redis in the configuration.
var Kind = lockkind.Kind{Name: "redis", Settings: func() lockkind.Settings { return new(settings) }}

type settings struct {
	// URL is redis://USER@HOST:PORT/DATABASE, or rediss:// for TLS. Required.
	URL     field.URL `key:"url" shown:"required for redis" required:"true" schemes:"redis|rediss"`
	URLFile string    `key:"url-file" unit:"file name"`
	// Password is that of the user, in the place of one in the URL. Default: none.
	Password     field.Secret `key:"password"`
	PasswordFile string       `key:"password-file" unit:"file name"`
	// Nodes are HOST:PORT of further nodes of a cluster, or of further sentinels. Default:
	// none.
	Nodes []string `key:"nodes" unit:"addresses"`
	// Master is the name by which sentinels know the server; url and nodes are those of
	// sentinels then. Default: there are none.
	Master string `key:"master" unit:"name"`
	// Cluster says that the servers are a cluster. Default: false.
	Cluster bool `key:"cluster" default:"false"`
	// TLS is for rediss://.
	TLS field.TLS `key:"tls"`
	// Notify sends a message at each release, for which a registry of Spring with
	// PUB_SUB_LOCK waits. Default: true.
	Notify bool `key:"notify" default:"true"`
	// Legacy are keys of an older system, by SUBJECT/PREDICATE, in which {1} is the first
	// resource: both keys are taken and released. Default: none.
	Legacy map[string]string `key:"legacy" unit:"keys"`

	region string
}

func (*settings) Target() (key, place string) { return "", "" }

func (s *settings) options() Options {
	return Options{
		URL: s.URL.Reveal(), Password: s.Password.Reveal(), Nodes: s.Nodes, Master: s.Master, Cluster: s.Cluster,
		Quiet: !s.Notify, Legacy: s.Legacy,
	}
}

func (s *settings) Check(r field.Report) {
	if s.URL.Scheme != "rediss" && s.TLS != (field.TLS{}) {
		r.Reject("tls", "it is not used with redis://; write rediss:// in url")
	}
	for _, node := range s.Nodes {
		if _, _, err := net.SplitHostPort(node); err != nil {
			r.Reject("nodes", fmt.Sprintf("%q is no HOST:PORT", node))
			return
		}
	}
	if _, err := s.options().legacies(); err != nil {
		r.Reject("legacy", err.Error())
	} else if _, err := s.options().client(); err != nil {
		r.Reject("url", err.Error())
	}
}

// For implements [lockkind.Settings].
func (s *settings) For(region string) lockkind.Settings {
	of := *s
	of.region = region
	return &of
}

// Capabilities implements [lockkind.Settings].
func (s *settings) Capabilities() lock.Capabilities { return Capabilities() }

// Open implements [lockkind.Settings].
func (s *settings) Open(o lockkind.Options) (lock.Provider, error) { return s.open(o) }

// silent keeps the client's own words off stderr: its errors say the same.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func (s *settings) open(o lockkind.Options) (*Provider, error) {
	redis.SetLogger(silent{}) // There is one for the process, which is observerd's own here.
	options := s.options()
	options.Logger = o.Logger
	if s.URL.Scheme == "rediss" {
		config, err := s.TLS.Config()
		if err != nil {
			return nil, err
		}
		options.TLS = config
	}
	return Open(options)
}

// Probe asks whether the server can keep locks.
func (s *settings) Probe(ctx context.Context) (findings []kind.Finding) {
	p, err := s.open(lockkind.Options{})
	if err != nil {
		return []kind.Finding{{Err: err}}
	}
	defer func() { _ = p.Close() }()
	return p.probe(ctx, s.region)
}

// ACLRule is what a user may have to do for the locks of a region, and no more.
const ACLRule = "~REGION:* ~{REGION:* &REGION-channel:* " +
	"+ping +time +get +set +del +unlink +exists +pttl +pexpire +pexpireat +pexpiretime +hget +hset +hdel +hvals +hgetall " +
	"+eval +evalsha +publish +psubscribe +punsubscribe +scan +info"

// probe returns what keeps the server from keeping locks, or makes it lose them.
func (p *Provider) probe(ctx context.Context, region string) (findings []kind.Finding) {
	add := func(warning bool, err error) {
		findings = append(findings, kind.Finding{Warning: warning, Err: err})
	}
	if err := p.client.Ping(ctx).Err(); err != nil {
		add(false, fmt.Errorf("it does not answer: %w", explained(err)))
		return findings
	}
	info := map[string]string{}
	if text, err := p.client.Info(ctx, "server", "replication", "memory", "cluster").Result(); err == nil {
		info = infoOf(text)
	} else {
		add(true, fmt.Errorf("it does not say its version, nor what it evicts: %w", explained(err)))
	}
	if info["role"] == "slave" {
		add(false, errors.New("it is a replica, which takes no locks; name the master, or its sentinels by master and nodes"))
		return findings
	}
	if info["cluster_enabled"] == "1" && !p.opts.Cluster {
		add(false, errors.New("it is one of a cluster; set cluster: true"))
		return findings
	}
	if tooOld(info) {
		add(false, fmt.Errorf("it is of version %s; locks need Redis 7.0 or Valkey 7.2", info["redis_version"]))
		return findings
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" && info["maxmemory"] != "0" {
		add(true, fmt.Errorf("it evicts keys when its memory is full (maxmemory-policy %s), locks that are held too; set noeviction, or give locks a server of their own", policy))
	}
	if err := p.mayLock(ctx, region); err != nil {
		add(false, fmt.Errorf("it takes no locks of the region %s: %w", region, explained(err)))
	}
	return findings
}

// mayLock reads and removes keys that nobody has, and sends a message to nobody.
func (p *Provider) mayLock(ctx context.Context, region string) error {
	keys, err := p.keysOf(lock.Request{Region: region, Key: "probe:" + uuid.NewString()})
	if err != nil {
		return err
	}
	return errors.Join(
		findScript.Run(ctx, p.client, keys).Err(),
		p.client.Del(ctx, keys...).Err(),
		p.client.Publish(ctx, channelOf(region)+keys[0], keys[0]).Err(),
	)
}

// infoOf reads what INFO says.
func infoOf(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// tooOld reports a server without PEXPIRETIME, and what is not known is not.
func tooOld(info map[string]string) bool {
	major, _, _ := strings.Cut(info["redis_version"], ".") // Valkey says 7.2 there.
	n, err := strconv.Atoi(major)
	return err == nil && n < 7
}
