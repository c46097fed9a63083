package githublock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/go-github/v93/github"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/lockkind"
)

// Kind is the kind of lock provider that is of type github in the configuration.
var Kind = lockkind.Kind{Name: "github", Settings: func() lockkind.Settings {
	return &settings{TTL: DefaultTTL, Heartbeat: DefaultHeartbeat, Budget: DefaultBudget, Workers: 1}
}}

// settings are [lockkind.Settings].
type settings struct {
	// Repository is that of the issues, as OWNER/NAME. It must have a commit. Required.
	Repository string `key:"repository" shown:"required for github" required:"true" unit:"OWNER/NAME"`
	// URL is that of a GitHub Enterprise Server. Default: github.com.
	URL field.URL `key:"url" shown:"github.com" schemes:"https|http"`
	// TLS is for such a server.
	TLS field.TLS `key:"tls"`
	// Token may read and write contents and issues of the repository. Default: GH_TOKEN of
	// the environment. The file is read before each request.
	Token     field.Secret `key:"token" shown:"GH_TOKEN"`
	TokenFile string       `key:"token-file" unit:"file name"`
	// Assignee is the login that an issue is assigned to while it is locked. Default: that of
	// the token.
	Assignee string `key:"assignee" shown:"that of the token" unit:"login"`
	// TTL is the least that a lock outlives its holder by. Default: 5m.
	TTL time.Duration `key:"ttl" default:"5m" min:"1m"`
	// Heartbeat is how often a holder edits its comment. Default: 30s.
	Heartbeat time.Duration `key:"heartbeat" default:"30s" min:"1s"`
	// Branches keeps the references among the branches, for a server that refuses others. All
	// processes that share the locks must say the same. Default: false.
	Branches bool `key:"branches" default:"false"`
	// Budget is how many requests an hour that create content the server allows the token.
	// Default: 500.
	Budget int `key:"budget" default:"500" min:"1" unit:"requests an hour"`
	// Workers is how many locks all processes with the token hold at a time, for the budget
	// alone. Default: 1.
	Workers int `key:"workers" default:"1" min:"1" max:"1000" unit:"locks"`
}

// Target is the repository: an issue has one lock, whatever the region.
func (s *settings) Target() (key, place string) {
	server := "github.com"
	if u, err := url.Parse(s.URL.Reveal()); err == nil && u.Host != "" {
		server = u.Host
	}
	return "repository", strings.ToLower(server + "/" + s.Repository)
}

func (s *settings) options() Options {
	o := Options{
		Repository: s.Repository, TLS: s.TLS, Assignee: s.Assignee, TTL: s.TTL, Heartbeat: s.Heartbeat, Branches: s.Branches, Budget: s.Budget,
	}
	if s.URL.Scheme != "" {
		o.URL = s.URL.Reveal()
	}
	switch token := s.Token.Reveal(); {
	case s.TokenFile != "":
		o.Token = func() (string, error) {
			text, err := os.ReadFile(s.TokenFile)
			return string(text), err
		}
	case token != "" || os.Getenv("GH_TOKEN") != "":
		token = cmp.Or(token, os.Getenv("GH_TOKEN"))
		o.Token = func() (string, error) { return token, nil }
	}
	return o
}

func (s *settings) Check(r field.Report) {
	if !repository.MatchString(s.Repository) {
		r.Reject("repository", "it is none; use OWNER/NAME, as acme/tasks")
	}
	if s.Heartbeat > s.TTL/2 {
		r.Reject("heartbeat", fmt.Sprintf("it is more than half of the TTL of %s; use less, such as 30s", s.TTL))
	}
	if s.URL.Scheme == "http" {
		r.Warn("url", "the token crosses the network as it is; use https://")
	}
	o := s.options()
	if writes := s.Workers * o.beats(); float64(writes) >= share*float64(s.Budget) {
		r.Warn("heartbeat", fmt.Sprintf("%d locks that are held at a time edit their comments %d times an hour, and the budget is %d requests; use a longer heartbeat, or let fewer workers share the token", s.Workers, writes, s.Budget))
	}
}

func (s *settings) For(string) lockkind.Settings { return s }

func (s *settings) Capabilities() lock.Capabilities { return s.options().capabilities() }

func (s *settings) Open(o lockkind.Options) (lock.Provider, error) {
	options := s.options()
	options.Logger = o.Logger
	return Open(options)
}

// Probe asks whether the token may do what locks need. It asks for what cannot be done: the
// server looks at the rights first.
func (s *settings) Probe(ctx context.Context) []kind.Finding {
	l, err := newIssues(s.options())
	if err != nil {
		return []kind.Finding{{Err: err}}
	}
	defer func() { _ = l.Close() }()
	return l.probe(ctx)
}

func (s *issues) probe(ctx context.Context) (findings []kind.Finding) {
	say := func(warning bool, err error) { findings = append(findings, kind.Finding{Warning: warning, Err: err}) }
	repo, _, err := s.client.Repositories.Get(ctx, s.owner, s.name)
	switch {
	case statusOf(err) == http.StatusNotFound:
		say(false, fmt.Errorf("there is no repository %s, or the token may not see it; check repository, and give the token access to it", s.Repository))
	case err != nil:
		say(false, s.explained(err))
	case repo.GetArchived():
		say(false, fmt.Errorf("the repository %s is archived; unarchive it, or name another", s.Repository))
	case !repo.GetHasIssues():
		say(false, fmt.Errorf("issues are switched off in %s; switch them on in its settings", s.Repository))
	}
	if len(findings) > 0 {
		return findings
	}
	if _, err = s.anyTree(ctx); err != nil {
		say(false, err)
		return findings
	}
	nothing := strings.Repeat("0", 40)
	_, _, err = s.client.Git.UpdateRef(ctx, s.owner, s.name, s.refOf(0), github.UpdateRef{SHA: nothing})
	if status := statusOf(err); status == http.StatusForbidden || status == http.StatusNotFound {
		say(false, fmt.Errorf("the token may not write contents of %s; give it contents: write (a classic token: the scope repo), and its account the right to push", s.Repository))
	} else if err != nil && status != http.StatusUnprocessableEntity && status != http.StatusInternalServerError { // GitHub has answered so of a commit that is not there.
		say(false, s.explained(err))
	}
	_, _, err = s.client.Issues.UpdateComment(ctx, s.owner, s.name, 1<<52, github.IssueCommentRequest{Body: "{}"})
	if status := statusOf(err); status == http.StatusForbidden {
		say(false, fmt.Errorf("the token may not write issues of %s; give it issues: write (a classic token: the scope repo)", s.Repository))
	} else if err != nil && status != http.StatusNotFound {
		say(false, s.explained(err))
	}
	if left := s.budget.left(); left < 1-share {
		say(true, fmt.Errorf("%.0f%% of the token's rate limit is left; use the token in fewer programs", 100*left))
	}
	if len(findings) == 0 && s.assignee(ctx) == "" {
		say(true, errors.New("the token has no login that an issue can be assigned to; set assignee"))
	}
	return findings
}
