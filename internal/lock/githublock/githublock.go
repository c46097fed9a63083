// Package githublock keeps locks of the issues of a repository on GitHub: the key of a lock is the
// number of an issue. The algorithm is that of package record.
//
// A reference of git decides who has a lock. It is made once for an issue, and moves only
// forward, to a commit that names the term, the node and the state; GitHub refuses a commit that
// does not descend from the one that is there. The fence is the length of that chain. The
// assignee and one comment for each term show who has the lock to people, and decide nothing:
// assignment adds to a set.
//
// A heartbeat is an edit of the comment, and the reference is read after it. Others see that the
// lease is over when reference and comment have both stood unchanged for the TTL. That compares
// nothing, so a process that has taken the lock of a silent holder looks at the comment once
// more, and does not use the lock if the holder has written by then.
package githublock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/record"
)

// The defaults of [Options].
const (
	DefaultTTL       = 5 * time.Minute
	DefaultHeartbeat = 30 * time.Second
	// DefaultBudget is how many requests an hour that create content GitHub allows.
	DefaultBudget = 500
)

// Options configure a provider.
type Options struct {
	// Repository is OWNER/NAME. Required. It must have a commit.
	Repository string
	// URL is that of a server of one's own. Empty means github.com.
	URL string
	// TLS is for such a server.
	TLS field.TLS
	// Token returns the token. It is asked before each request, so that a token of an app,
	// which lasts for an hour, can be replaced. Required.
	Token func() (string, error)
	// Assignee is the login that an issue is assigned to while its lock is held. Empty means
	// that of the token.
	Assignee string
	// TTL is the least for which a lock outlives its holder's silence. 0 means [DefaultTTL].
	TTL time.Duration
	// Heartbeat is how often a holder edits its comment, at most half of the TTL. 0 means
	// [DefaultHeartbeat].
	Heartbeat time.Duration
	// Branches keeps the references below refs/heads/observerd-locks/, for a server that
	// refuses refs/observerd/locks/. All processes must agree: the locks are others.
	Branches bool
	// Budget is how many requests that create content the server allows in an hour. 0 means
	// [DefaultBudget].
	Budget int
	// Registerer receives the metrics. Nil exports none.
	Registerer prometheus.Registerer
	// Logger receives what a person should know; nil discards it.
	Logger *slog.Logger
}

// Provider keeps locks of issues. It is safe for concurrent use.
type Provider struct {
	*record.Provider
	issues *issues
}

// Open returns a provider. It connects when it is used. The error is of the options.
func Open(o Options) (*Provider, error) {
	s, err := newIssues(o)
	if err != nil {
		return nil, err
	}
	p := &Provider{issues: s}
	p.Provider = record.New(record.Options{Records: s, Beats: s, Capabilities: s.capabilities()})
	return p, nil
}

// capabilities are those of a provider, for people: none is opened.
func (o Options) capabilities() lock.Capabilities {
	o.setDefaults()
	var none *Provider
	return lock.Capabilities{
		Name: "github", MinTTL: o.TTL, Extender: none, Finder: none, Stealer: none, Queue: none,
		RenewEvery: func(ttl time.Duration) time.Duration { return min(o.Heartbeat, ttl/2) },
		Sweep:      func(context.Context, string, time.Time) (int, error) { return 0, lock.ErrUnsupported },
		Budget:     fmt.Sprintf("%d locks an hour, or %d held at a time", o.Budget/cycle, o.Budget/o.beats()),
	}
}

// cycle is how many requests that create content a lock takes: commit, reference, assignee and
// comment, each twice.
const cycle = 8

// beats is how many a lock takes that is held for an hour.
func (o *Options) beats() int { return max(1, int(time.Hour/o.Heartbeat)) }

func (o *Options) setDefaults() {
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	o.Budget = cmp.Or(o.Budget, DefaultBudget)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}

// Capabilities implements [lock.Provider].
func (p *Provider) Capabilities() lock.Capabilities {
	c := p.Provider.Capabilities()
	c.Stealer, c.Queue, c.Sweep, c.Closer = p, p, p.sweep, p.issues
	return c
}

// Acquire implements [lock.Provider]. The issue must be open.
func (p *Provider) Acquire(ctx context.Context, r lock.Request) (g lock.Grant, err error) {
	if err = p.issues.look(ctx, r); err != nil {
		return g, fmt.Errorf("acquire lock %s: %w", r.Key, err)
	}
	r.TTL = max(r.TTL, p.issues.TTL)
	if g, err = p.Provider.Acquire(ctx, r); err == nil {
		p.issues.show(ctx, g)
	}
	return g, err
}

// Steal implements [lock.Stealer].
func (p *Provider) Steal(ctx context.Context, r lock.Request, seen lock.Held, by lock.By) (lock.Grant, error) {
	r.TTL = max(r.TTL, p.issues.TTL)
	g, err := p.Provider.Steal(ctx, r, seen, by)
	if err == nil {
		p.issues.show(ctx, g)
	}
	return g, err
}

// Release implements [lock.Provider].
func (p *Provider) Release(ctx context.Context, g lock.Grant) error {
	p.issues.hide(ctx, g)
	return p.Provider.Release(ctx, g)
}

// look returns an error where the lock's issue is none to work on.
func (s *issues) look(ctx context.Context, r lock.Request) error {
	n, err := s.number(r.Region, r.Key)
	if err != nil {
		return err
	}
	issue, _, err := s.client.Issues.Get(ctx, s.owner, s.name, n)
	switch {
	case statusOf(err) == 404 || statusOf(err) == 410 || err == nil && issue.GetNumber() != n:
		return fmt.Errorf("there is no issue %d in %s, or the token may not see it", n, s.Repository)
	case err != nil:
		return s.explained(err)
	case issue.IsPullRequest():
		return fmt.Errorf("%d of %s is a pull request; name an issue", n, s.Repository)
	case issue.GetState() != "open":
		return fmt.Errorf("issue %d of %s is %s; reopen it, or name another", n, s.Repository, issue.GetState())
	}
	return nil
}

// Close ends the connections, and takes the metric away.
func (s *issues) Close() error {
	if b := s.budget; b.gauge != nil {
		b.Registerer.Unregister(b.gauge)
	}
	s.client.Client().CloseIdleConnections()
	return nil
}
