package githublock_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/lock/githublock"
	"github.com/observerd/observerd/test/kit/githubtest"
)

// What validate says of a repository and its token. Nothing is written.
func TestProbe(t *testing.T) {
	t.Parallel()
	status := func(code int) func(s *githubtest.Server) {
		return func(s *githubtest.Server) {
			s.Fail(func(*http.Request) githubtest.Fault { return githubtest.Fault{Status: code} })
		}
	}
	for name, c := range map[string]struct {
		rights     githubtest.Rights
		token      string
		repository string
		set        func(s *githubtest.Server)
		want       string
		warning    bool
	}{
		"all is there":     {rights: githubtest.Push},
		"an app":           {rights: githubtest.Installation, want: "set assignee", warning: true},
		"no right to push": {rights: githubtest.Issues, want: "may not write contents of acme/tasks; give it contents: write"},
		"only reads":       {rights: githubtest.Read, want: "may not write contents"},
		"does not see it":  {rights: githubtest.None, want: "there is no repository acme/tasks, or the token may not see it"},
		"no repository":    {rights: githubtest.Push, repository: "acme/none", want: "there is no repository acme/none"},
		"unknown token":    {token: "ghp_unknown", want: "does not know the token (401)"},
		"no commit":        {rights: githubtest.Push, set: (*githubtest.Server).Empty, want: "has no commit"},
		"archived":         {rights: githubtest.Push, set: (*githubtest.Server).Archive, want: "is archived"},
		"used up":          {rights: githubtest.Push, set: func(s *githubtest.Server) { s.Limit(0) }, want: "is used up until"},
		"nearly used up":   {rights: githubtest.Push, set: func(s *githubtest.Server) { s.Limit(255) }, want: "5% of the token's rate limit is left", warning: true},
		"down":             {rights: githubtest.Push, set: status(http.StatusBadGateway), want: "502"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.Start(t)
			if c.token == "" {
				c.token = s.Token("bot", c.rights)
			}
			if c.repository == "" {
				c.repository = githubtest.Repository
			}
			if c.set != nil {
				c.set(s)
			}
			found := githublock.SettingsOf(c.repository, s.URL(), c.token).For("DEFAULT").Probe(t.Context())
			var said []string
			for _, f := range found {
				said = append(said, f.Err.Error())
			}
			text := strings.Join(said, "\n")
			if (len(found) > 0) != (c.want != "") || !strings.Contains(text, c.want) || strings.Contains(text, "ghp_") {
				t.Errorf("found %q, want %q", text, c.want)
			}
			if warnings(found) != c.warning {
				t.Errorf("warning %t of %q", !c.warning, text)
			}
			if s.Ref("refs/observerd/locks/0") != "" {
				t.Error("a reference is written")
			}
		})
	}
}

func warnings(found []kind.Finding) bool {
	for _, f := range found {
		if !f.Warning {
			return false
		}
	}
	return len(found) > 0
}
