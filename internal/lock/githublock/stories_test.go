package githublock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v93/github"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/githublock"
	"github.com/observerd/observerd/test/kit/githubtest"
)

// want is the request of an issue's lock.
func want(issue int, node string) lock.Request {
	return lock.Request{Key: fmt.Sprint("issue:", issue), Region: "DEFAULT", TTL: 30 * time.Second, Node: node, Metadata: `{"complexity":"high","purpose":"a test"}`}
}

func acquire(t *testing.T, p lock.Provider, r lock.Request) lock.Grant {
	t.Helper()
	g, err := p.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func release(t *testing.T, p lock.Provider, g lock.Grant) {
	t.Helper()
	if err := p.Release(t.Context(), g); err != nil {
		t.Error(err)
	}
}

func renew(t *testing.T, p lock.Provider, g lock.Grant, want lock.Renewal) {
	t.Helper()
	if got, err := p.Renew(t.Context(), []lock.Grant{g}); len(got) != 1 || got[0] != want {
		t.Errorf("renewal: %v, %v, want %v", got, err, want)
	}
}

// worker is a provider with an account that may push.
func worker(t *testing.T, s *githubtest.Server, login string) *githublock.Provider {
	return open(t, options(s, s.Token(login, githubtest.Push)))
}

// A person changes what is shown. Each change is made under a lock.
func TestWhatIsShownDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *githubtest.Server, n int){
		"the comment is deleted": func(s *githubtest.Server, n int) { s.DeleteComments(n) },
		"another is assigned":    func(s *githubtest.Server, n int) { s.Unassign(n, "bot"); s.Assign(n, "person") },
		"nobody is assigned":     func(s *githubtest.Server, n int) { s.Unassign(n, "bot") },
		"the issue is closed":    func(s *githubtest.Server, n int) { s.Close(n) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.Start(t)
			holder, other, n := worker(t, s, "bot"), worker(t, s, "other"), s.Issue("import")
			s.Token("person", githubtest.Push)
			g := acquire(t, holder, want(n, "holder"))
			change(s, n)
			if _, err := other.Acquire(t.Context(), want(n, "other")); err == nil {
				t.Error("another has got the lock")
			}
			renew(t, holder, g, lock.Renewed)
			if all := comments(t, s, n); len(all) != 1 || all[0].WorkerID != g.Term {
				t.Errorf("comments %+v", all)
			}
			release(t, holder, g)
		})
	}
}

// The holder's machine wakes between the last look of the process that takes its lock and the
// move of the reference.
func TestHolderThatComesBackMeanwhile(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	token := s.Token("bot", githubtest.Push)
	holder, other, n := open(t, options(s, token)), open(t, options(s, token)), s.Issue("import")
	r := want(n, "holder")
	r.TTL = time.Second
	g := acquire(t, holder, r)
	if _, err := other.Acquire(t.Context(), want(n, "other")); !errors.Is(err, lock.ErrHeld) {
		t.Fatal(err)
	}
	time.Sleep(r.TTL)
	var once sync.Once
	s.Fail(func(q *http.Request) githubtest.Fault {
		if q.Method == http.MethodPatch && strings.Contains(q.URL.Path, "/git/refs/") {
			once.Do(func() {
				if err := holder.Beat(context.WithoutCancel(t.Context()), g); err != nil {
					t.Error(err)
				}
			})
		}
		return githubtest.Fault{}
	})
	_, err := other.Acquire(t.Context(), want(n, "other"))
	if held, ok := errors.AsType[*lock.HeldError](err); !ok || held.Node != "holder" {
		t.Errorf("the lock of a holder that has come back: %v", err)
	}
	s.Fail(nil)
	renew(t, holder, g, lock.Lost)
}

func TestCallsOfALock(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	p := worker(t, s, "bot")
	release(t, p, acquire(t, p, want(s.Issue("the first lock asks for the tree and the login"), "a")))
	n := s.Issue("import")
	s.Forget()
	id := regexp.MustCompile(`comments/[0-9]+`)
	calls := func(step, want string, writes int) {
		t.Helper()
		all := s.Requests()
		s.Forget()
		n := 0
		for i, c := range all {
			if all[i] = id.ReplaceAllString(c, "comments/ID"); !strings.HasPrefix(c, "GET ") {
				n++
			}
		}
		if got := strings.Join(all, ", "); got != want || n != writes {
			t.Errorf("%s: %d writes: %s", step, n, got)
		}
	}
	g := acquire(t, p, want(n, "a"))
	calls("acquire", "GET /issues/2, GET /git/ref/observerd/locks/2, POST /git/commits, POST /git/refs, POST /issues/2/comments, POST /issues/2/assignees", 4)
	renew(t, p, g, lock.Renewed)
	calls("first heartbeat", "GET /issues/2/comments, PATCH /issues/comments/ID, GET /git/ref/observerd/locks/2, GET /issues/2/comments", 1)
	renew(t, p, g, lock.Renewed)
	calls("heartbeat", "PATCH /issues/comments/ID, GET /git/ref/observerd/locks/2, GET /issues/2/comments", 1)
	release(t, p, g)
	calls("release", "GET /git/ref/observerd/locks/2, GET /issues/2/comments, PATCH /issues/comments/ID, DELETE /issues/2/assignees, POST /git/commits, PATCH /git/refs/observerd/locks/2", 4)
}

func TestRefusalsSayWhatToGrant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rights githubtest.Rights
		set    func(s *githubtest.Server, o *githublock.Options) int
		want   string
	}{
		"unknown token": {set: func(s *githubtest.Server, o *githublock.Options) int {
			o.Token = func() (string, error) { return "ghp_unknown", nil }
			return s.Issue("a")
		}, want: "does not know the token"},
		"no right to push": {rights: githubtest.Issues, want: "contents: write"},
		"only reads":       {rights: githubtest.Read, want: "contents: write"},
		"no repository":    {set: func(s *githubtest.Server, o *githublock.Options) int { o.Repository = "acme/none"; return 1 }, want: "there is no issue 1 in acme/none"},
		"empty":            {set: func(s *githubtest.Server, _ *githublock.Options) int { s.Empty(); return s.Issue("a") }, want: "has no commit"},
		"archived":         {set: func(s *githubtest.Server, _ *githublock.Options) int { n := s.Issue("a"); s.Archive(); return n }, want: "archived"},
		"no issue":         {set: func(*githubtest.Server, *githublock.Options) int { return 99 }, want: "there is no issue 99"},
		"closed":           {set: func(s *githubtest.Server, _ *githublock.Options) int { n := s.Issue("a"); s.Close(n); return n }, want: "is closed; reopen it"},
		"a pull request":   {set: func(s *githubtest.Server, _ *githublock.Options) int { return s.PullRequest() }, want: "is a pull request"},
		"namespace":        {set: func(s *githubtest.Server, _ *githublock.Options) int { s.RefuseNamespace(); return s.Issue("a") }, want: "set branches: true"},
		"rate limit":       {set: func(s *githubtest.Server, _ *githublock.Options) int { n := s.Issue("a"); s.Limit(0); return n }, want: "rate limit of the token is used up until"},
		"secondary": {set: func(s *githubtest.Server, _ *githublock.Options) int {
			s.Fail(func(r *http.Request) githubtest.Fault {
				if r.Method == http.MethodGet {
					return githubtest.Fault{}
				}
				return githubtest.Fault{Status: http.StatusForbidden, Header: http.Header{"Retry-After": {"7"}}, Body: `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`}
			})
			return s.Issue("a")
		}, want: "for another 7 seconds"},
		"too many requests": {set: func(s *githubtest.Server, _ *githublock.Options) int {
			s.Fail(func(*http.Request) githubtest.Fault {
				return githubtest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"9"}}, Body: `{"message":"slow down"}`}
			})
			return s.Issue("a")
		}, want: "for another 9 seconds"},
		"server error": {set: func(s *githubtest.Server, _ *githublock.Options) int {
			s.Fail(func(*http.Request) githubtest.Fault { return githubtest.Fault{Status: http.StatusBadGateway} })
			return s.Issue("a")
		}, want: "502"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.Start(t)
			if c.rights == githubtest.None {
				c.rights = githubtest.Push
			}
			o := options(s, s.Token("bot", c.rights))
			if c.set == nil {
				c.set = func(s *githubtest.Server, _ *githublock.Options) int { return s.Issue("a") }
			}
			n := c.set(s, &o)
			_, err := open(t, o).Acquire(t.Context(), want(n, "a"))
			if err == nil || errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "ghp_") {
				t.Errorf("acquire: %v, want one that says %q", err, c.want)
			}
			if s.Ref("refs/observerd/locks/1") != "" {
				t.Error("a reference was left")
			}
		})
	}
}

func TestReferencesAmongTheBranches(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	s.RefuseNamespace()
	o := options(s, s.Token("bot", githubtest.Push))
	o.Branches = true
	p, n := open(t, o), s.Issue("import")
	g := acquire(t, p, want(n, "a"))
	if s.Ref(fmt.Sprint("refs/heads/observerd-locks/", n)) == "" {
		t.Error("there is no branch")
	}
	renew(t, p, g, lock.Renewed)
	release(t, p, g)
}

// Each write of an acquisition is carried out without an answer.
func TestAnswersThatAreLost(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"POST /git/commits", "POST /git/refs", "PATCH /git/refs", "POST /issues/1/comments", "PATCH /issues/comments", "POST /issues/1/assignees", "DELETE /issues/1/assignees"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := githubtest.Start(t)
			p, other, n := worker(t, s, "bot"), worker(t, s, "other"), s.Issue("import")
			var lost sync.Once
			method, path, _ := strings.Cut(what, " ")
			s.Fail(func(r *http.Request) (f githubtest.Fault) {
				if r.Method == method && strings.Contains(r.URL.Path, "/tasks"+path) {
					lost.Do(func() { f.Lost = true })
				}
				return f
			})
			for range 2 { // The second time, the reference is there.
				g := acquire(t, p, want(n, "a"))
				if _, err := other.Acquire(t.Context(), want(n, "b")); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("another is told %v", err)
				}
				renew(t, p, g, lock.Renewed)
				terms := 0
				for _, c := range comments(t, s, n) {
					if c.WorkerID == g.Term {
						terms++
					}
				}
				if terms != 1 {
					t.Errorf("the term has %d comments", terms)
				}
				release(t, p, g)
			}
		})
	}
}

// A token that is replaced in its file is used from the next request on.
func TestTokenIsReadAgain(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	file, n := filepath.Join(t.TempDir(), "token"), s.Issue("import")
	o := options(s, "")
	o.Token = func() (string, error) {
		text, err := os.ReadFile(file)
		return string(text), err
	}
	p := open(t, o)
	if _, err := p.Acquire(t.Context(), want(n, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for _, login := range []string{"old", "new"} {
		if err := os.WriteFile(file, []byte(s.Token(login, githubtest.Push)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		release(t, p, acquire(t, p, want(n, "a")))
	}
}

// An app may write, and has no login that an issue can be assigned to.
func TestAppAssignsNobody(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	var log strings.Builder
	o := options(s, s.Token("bot", githubtest.Installation))
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	p, n := open(t, o), s.Issue("import")
	release(t, p, acquire(t, p, want(n, "a")))
	if !strings.Contains(log.String(), "set assignee") || strings.Contains(log.String(), "ghp_") {
		t.Errorf("log: %s", log.String())
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	var log strings.Builder
	registry := prometheus.NewRegistry()
	o := options(s, s.Token("bot", githubtest.Push))
	o.Budget, o.Registerer, o.Logger = 10, registry, slog.New(slog.NewTextHandler(&log, nil))
	p := open(t, o)
	left := func(want float64) {
		t.Helper()
		text := fmt.Sprintf("# HELP observerd_locks_github_budget_remaining %s\n# TYPE observerd_locks_github_budget_remaining gauge\nobserverd_locks_github_budget_remaining{repository=\"acme/tasks\"} %v\n",
			"Share of the requests that GitHub allows in an hour which is left, from 0 to 1: of those that create content, counted in this process, or of the rate limit if that is less.", want)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(text)); err != nil {
			t.Error(err)
		}
	}
	left(1)
	g := acquire(t, p, want(s.Issue("import"), "a"))
	left(0.6)
	if strings.Contains(log.String(), "Most of the requests") {
		t.Error("the warning came early")
	}
	release(t, p, g)
	if !strings.Contains(log.String(), "Most of the requests") {
		t.Errorf("no warning: %s", log.String())
	}
	open(t, o) // another provider of the same repository
	s.Limit(50)
	_, _ = p.Find(t.Context(), lock.Query{Region: "DEFAULT", Limit: 1})
	left(0.0098)
}

// A person moves the reference to a commit of the program.
func TestReferenceThatAPersonMoves(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	token, n := s.Token("bot", githubtest.Push), s.Issue("import")
	p := open(t, options(s, token))
	g := acquire(t, p, want(n, "a"))
	person, err := github.NewClient(github.WithEnterpriseURLs(s.URL(), s.URL()), github.WithAuthToken(token))
	if err != nil {
		t.Fatal(err)
	}
	defer person.Client().CloseIdleConnections()
	if _, _, err := person.Git.UpdateRef(t.Context(), "acme", "tasks", p.RefOf(n), github.UpdateRef{SHA: s.Ref("refs/heads/main"), Force: new(true)}); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Renew(t.Context(), []lock.Grant{g}); got[0] != lock.Unknown || err == nil {
		t.Errorf("renewal: %v, %v", got, err)
	}
	if _, err := p.Acquire(t.Context(), want(n, "b")); err == nil || !strings.Contains(err.Error(), "refs/observerd/locks/1: the reference is at a commit that observerd did not make") {
		t.Errorf("acquire: %v", err)
	}
}
