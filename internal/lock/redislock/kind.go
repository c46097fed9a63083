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
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/lockkind"
)

// Kind is the kind of lock provider that is of type redis in the configuration.
var Kind = lockkind.Kind{Name: "redis", Settings: func() lockkind.Settings { return &settings{Notify: true} }}

// settings are [lockkind.Settings].
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
	// SentinelPassword is that of the sentinels. Default: none.
	SentinelPassword     field.Secret `key:"sentinel-password"`
	SentinelPasswordFile string       `key:"sentinel-password-file" unit:"file name"`
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

// Target is the server and its database: locks of one region at two providers would be the
// same.
func (s *settings) Target() (key, place string) {
	u, err := s.options().client()
	if err != nil {
		return "", "" // Check says so.
	}
	return "url", fmt.Sprint(u.Addrs[0], "/", u.DB, " ", u.MasterName)
}

func (s *settings) options() Options {
	return Options{
		URL: s.URL.Reveal(), Password: s.Password.Reveal(), Nodes: s.Nodes, Master: s.Master, SentinelPassword: s.SentinelPassword.Reveal(), Cluster: s.Cluster,
		Quiet: !s.Notify, Legacy: s.Legacy,
	}
}

func (s *settings) Check(r field.Report) {
	if s.URL.Scheme != "rediss" && s.TLS != (field.TLS{}) {
		r.Reject("tls", "it is not used with redis://; set rediss:// in url")
	}
	for _, node := range s.Nodes {
		if _, _, err := net.SplitHostPort(node); err != nil {
			r.Reject("nodes", fmt.Sprintf("%q is not HOST:PORT", node))
			return
		}
	}
	if _, err := s.options().legacies(); err != nil {
		r.Reject("legacy", err.Error())
	} else if _, err := s.options().client(); err != nil {
		r.Reject("url", err.Error())
	}
}

func (s *settings) For(region string) lockkind.Settings {
	of := *s
	of.region = region
	return &of
}

func (s *settings) Capabilities() lock.Capabilities {
	c := Capabilities()
	if !s.Notify {
		c.Notify = nil
	}
	return c
}

func (s *settings) Open(o lockkind.Options) (lock.Provider, error) { return s.open(o) }

func (s *settings) open(o lockkind.Options) (*Provider, error) {
	redis.SetLogger(mute{})
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

// mute keeps the client from writing past the log what its errors say, too.
type mute struct{}

// Printf does nothing.
func (mute) Printf(context.Context, string, ...any) {}

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
	"+ping +time +get +set +del +exists +pttl +pexpire +pexpireat +pexpiretime +hset +hget +hdel +hvals +hgetall " +
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
	text, err := p.client.Info(ctx, "server", "replication", "memory", "cluster").Result()
	if err != nil {
		add(true, fmt.Errorf("it does not say its version, nor what it evicts: %w", explained(err)))
	}
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	if info["role"] == "slave" {
		add(false, errors.New("it is a replica, which takes no locks; name the master, or its sentinels by master and nodes"))
		return findings
	}
	if info["cluster_enabled"] == "1" && !p.opts.Cluster {
		add(false, errors.New("it is one of a cluster; set cluster: true"))
		return findings
	}
	major, _, _ := strings.Cut(info["redis_version"], ".")  // Valkey says 7.2 there.
	if n, err := strconv.Atoi(major); err == nil && n < 7 { // It has no PEXPIRETIME.
		add(false, fmt.Errorf("it is of version %s; locks need Redis 7.0 or Valkey 7.2", info["redis_version"]))
		return findings
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" && info["maxmemory"] != "0" {
		add(true, fmt.Errorf("it evicts keys when its memory is full (maxmemory-policy %s), locks that are held too; set noeviction, or give locks a server of their own", policy))
	}
	return append(findings, p.rights(ctx, region)...)
}

// rights returns what the user may not do. Redis looks at that before it looks at what it is
// asked, which changes nothing here: the keys are not there, and a field has no value.
func (p *Provider) rights(ctx context.Context, region string) (findings []kind.Finding) {
	name := region + ":probe:" + uuid.NewString()
	key := "{" + name + "}"
	asked := [][]any{
		{"evalsha", acquireScript.Hash(), 0}, {"eval", prelude + renewLua, 3, key, key, key, "-", 1, ""}, {"time"}, {"scan", 0, "match", key, "count", 1},
		{"exists", key}, {"get", key}, {"get", name}, {"set", key, "", "xx"}, {"del", key}, {"pttl", key}, {"pexpire", key, 1}, {"pexpireat", key, 1}, {"pexpiretime", key},
		{"hset", key, "a", "1", "b"}, {"hget", key, "a"}, {"hvals", key}, {"hgetall", key}, {"hdel", key, "a"},
	}
	if !p.opts.Quiet {
		asked = append(asked, []any{"publish", channelOf(region) + name, ""})
	}
	var commands []string
	var keys, channels bool
	for _, args := range asked {
		err := p.client.Do(ctx, args...).Err()
		switch {
		case err == nil, errors.Is(err, redis.Nil), redis.HasErrorPrefix(err, "NOSCRIPT"), redis.HasErrorPrefix(err, "wrong number"):
		case strings.Contains(err.Error(), "the script can't"), strings.Contains(err.Error(), "ACL failure"): // The command is asked for, too.
		case redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(err.Error(), " key"):
			keys = true
		case redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(err.Error(), " channel"):
			channels = true
		case redis.HasErrorPrefix(err, "NOPERM"):
			commands = append(commands, fmt.Sprintf("+%s", args[0]))
		default:
			return []kind.Finding{{Err: fmt.Errorf("it takes no locks: %w", explained(err))}}
		}
	}
	if len(commands) > 0 {
		findings = append(findings, kind.Finding{Err: fmt.Errorf("the user may not do what locks need; grant it by ACL SETUSER: %s", strings.Join(commands, " "))})
	}
	if keys {
		findings = append(findings, kind.Finding{Err: fmt.Errorf("the user may not use the keys of the region; grant them by ACL SETUSER: ~%[1]s:* ~{%[1]s:*", region)})
	}
	if channels {
		findings = append(findings, kind.Finding{Warning: true, Err: errors.New("the user may not use the channels of the region; " + publishAdvice)})
	}
	return findings
}
