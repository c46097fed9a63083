package githubtest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-github/v93/github"
)

func client(t *testing.T, s *Server, token string) *github.Client {
	t.Helper()
	c, err := github.NewClient(github.WithEnterpriseURLs(s.URL(), s.URL()), github.WithAuthToken(token))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// status is that of an answer that was an error, with its message; "" if it was none.
func status(err error) string {
	var refused *github.ErrorResponse
	var limited *github.RateLimitError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprint(refused.Response.StatusCode, " ", refused.Message)
	case errors.As(err, &limited):
		return fmt.Sprint(limited.Response.StatusCode, " ", limited.Message)
	case err != nil:
		return err.Error()
	}
	return ""
}

func must[T any](t *testing.T) func(v T, _ *github.Response, err error) T {
	t.Helper()
	return func(v T, _ *github.Response, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func commitOn(t *testing.T, c *github.Client, message, parent string) string {
	t.Helper()
	with := github.Commit{Message: &message, Tree: &github.Tree{SHA: new(emptyTree)}}
	if parent != "" {
		with.Parents = []*github.Commit{{SHA: &parent}}
	}
	return must[*github.Commit](t)(c.Git.CreateCommit(t.Context(), "acme", "tasks", with, nil)).GetSHA()
}

func TestLifeOfAReference(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := client(t, s, s.Token("ann", Push))
	git, ctx := c.Git, t.Context()
	const name = "observerd/locks/1"
	refused := func(want string, err error) {
		t.Helper()
		if got := status(err); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	_, _, err := git.GetRef(ctx, "acme", "tasks", name)
	refused("404", err)
	root := commitOn(t, c, "one", "")
	_, _, err = git.UpdateRef(ctx, "acme", "tasks", name, github.UpdateRef{SHA: root})
	refused("422 Reference does not exist", err)
	create := github.CreateRef{Ref: "refs/" + name, SHA: root}
	must[*github.Reference](t)(git.CreateRef(ctx, "acme", "tasks", create))
	_, _, err = git.CreateRef(ctx, "acme", "tasks", create)
	refused("422 Reference already exists", err)
	_, _, err = git.CreateRef(ctx, "acme", "tasks", github.CreateRef{Ref: "refs/short", SHA: root})
	refused("422 Reference name", err)
	_, _, err = git.CreateRef(ctx, "acme", "tasks", github.CreateRef{Ref: "refs/" + name + "/2", SHA: root})
	refused("422 Reference update failed", err)
	next, other := commitOn(t, c, "two", root), commitOn(t, c, "other", root)
	for _, sha := range []string{root, next, next} {
		must[*github.Reference](t)(git.UpdateRef(ctx, "acme", "tasks", name, github.UpdateRef{SHA: sha}))
	}
	_, _, err = git.UpdateRef(ctx, "acme", "tasks", name, github.UpdateRef{SHA: other})
	refused("422 Update is not a fast forward", err)
	_, _, err = git.UpdateRef(ctx, "acme", "tasks", name, github.UpdateRef{SHA: strings.Repeat("0", 40)})
	refused("422 Object does not exist", err)
	if found := must[[]*github.Reference](t)(git.ListMatchingRefs(ctx, "acme", "tasks", "observerd/locks/")); len(found) != 1 || found[0].GetObject().GetSHA() != next {
		t.Errorf("found %v", found)
	}
	if got := must[*github.Commit](t)(git.GetCommit(ctx, "acme", "tasks", next)); got.GetMessage() != "two" || got.Parents[0].GetSHA() != root {
		t.Errorf("commit %v", got)
	}
	if s.Ref(name) != next || s.Message(next) != "two" || s.Chain(next) != 2 {
		t.Errorf("%s: %q, %d", s.Ref(name), s.Message(next), s.Chain(next))
	}
	head := must[*github.RepositoryCommit](t)(c.Repositories.GetCommit(ctx, "acme", "tasks", "HEAD", nil))
	if head.GetSHA() != s.Ref("heads/main") || head.GetCommit().GetTree().GetSHA() != emptyTree {
		t.Errorf("head %v", head)
	}
	s.RefuseNamespace()
	_, _, err = git.CreateRef(ctx, "acme", "tasks", github.CreateRef{Ref: "refs/observerd/locks/2", SHA: root})
	refused("422", err)
	must[*github.Reference](t)(git.CreateRef(ctx, "acme", "tasks", github.CreateRef{Ref: "refs/heads/observerd-locks/2", SHA: root}))
	s.Empty()
	_, _, err = git.GetRef(ctx, "acme", "tasks", name)
	refused("409 Git Repository is empty.", err)
}

// TestShaOfGit has the SHAs that `git commit-tree` gives.
func TestShaOfGit(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := client(t, s, s.Token("ann", Push))
	by := func(name string, second int) *github.CommitAuthor {
		return &github.CommitAuthor{Name: &name, Email: new(strings.ToLower(name) + "@x"), Date: &github.Timestamp{Time: time.Unix(1767225600, 0).Add(time.Duration(second) * time.Second)}}
	}
	root := github.Commit{Message: new("m\n"), Tree: &github.Tree{SHA: new(emptyTree)}, Author: by("A", 0)}
	next := github.Commit{Message: new("n\n"), Tree: root.Tree, Author: by("A", 0), Committer: by("B", 1), Parents: []*github.Commit{{SHA: new("018463fd61ed120ee128d3d5ab425ce9f41983fe")}}}
	for i, with := range []github.Commit{root, next, root} {
		want := []string{"018463fd61ed120ee128d3d5ab425ce9f41983fe", "763485c42305c80d75f9791a20ffdd13baaa68b6"}[i%2]
		if got := must[*github.Commit](t)(c.Git.CreateCommit(t.Context(), "acme", "tasks", with, nil)).GetSHA(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestOneOfManyMovesForward(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := client(t, s, s.Token("ann", Push))
	root := s.Ref("heads/main")
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		next := commitOn(t, c, fmt.Sprint(i), root)
		all.Go(func() {
			if _, _, err := c.Git.UpdateRef(t.Context(), "acme", "tasks", "heads/main", github.UpdateRef{SHA: next}); err == nil {
				won.Add(1)
			} else if status(err) != "422 Update is not a fast forward" {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d moved main", won.Load())
	}
}

func TestIssues(t *testing.T) {
	t.Parallel()
	s := Start(t)
	push, plain, bot := client(t, s, s.Token("ann", Push)), client(t, s, s.Token("ben", Issues)), client(t, s, s.Token("app", Installation))
	n, pull, ctx := s.Issue("One", "todo"), s.PullRequest(), t.Context()
	must[*github.Issue](t)(plain.Issues.AddAssignees(ctx, "acme", "tasks", n, []string{"ben"}))
	if got := s.Assignees(n); len(got) > 0 {
		t.Errorf("without push assigned to %v", got)
	}
	must[*github.Issue](t)(push.Issues.AddAssignees(ctx, "acme", "tasks", n, []string{"Ann", "nobody", "app[bot]"}))
	if got := s.Assignees(n); !slices.Equal(got, []string{"ann"}) {
		t.Errorf("assigned to %v", got)
	}
	must[*github.Issue](t)(push.Issues.RemoveAssignees(ctx, "acme", "tasks", n, []string{"ann"}))
	must[[]*github.Label](t)(push.Issues.AddLabelsToIssue(ctx, "acme", "tasks", n, []string{"busy"}))
	if _, err := push.Issues.RemoveLabelForIssue(ctx, "acme", "tasks", n, "todo"); err != nil {
		t.Error(err)
	}
	must[*github.Issue](t)(push.Issues.Update(ctx, "acme", "tasks", n, github.UpdateIssueRequest{State: new("closed")}))
	if len(s.Assignees(n)) > 0 || !slices.Equal(s.Labels(n), []string{"busy"}) || s.State(n) != "closed" {
		t.Errorf("%v %v %v", s.Assignees(n), s.Labels(n), s.State(n))
	}
	if got := must[*github.Issue](t)(push.Issues.Get(ctx, "acme", "tasks", pull)); !got.IsPullRequest() {
		t.Error("the pull request is none")
	}
	if got := must[[]*github.Issue](t)(push.Issues.ListByRepo(ctx, "acme", "tasks", &github.IssueListByRepoOptions{State: "all", Labels: []string{"busy"}})); len(got) != 1 {
		t.Errorf("%d issues", len(got))
	}
	first := must[*github.IssueComment](t)(plain.Issues.CreateComment(ctx, "acme", "tasks", n, github.IssueCommentRequest{Body: "1"})) // It is closed.
	for range 4 {
		must[*github.IssueComment](t)(bot.Issues.CreateComment(ctx, "acme", "tasks", n, github.IssueCommentRequest{Body: "2"}))
	}
	page, answer, err := push.Issues.ListComments(ctx, "acme", "tasks", n, &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 2}})
	if err != nil || len(page) != 2 || answer.NextPage != 2 || answer.LastPage != 3 || page[0].GetID() != first.GetID() {
		t.Errorf("%v, %v, %v", page, answer, err)
	}
	all := must[[]*github.IssueComment](t)(push.Issues.ListComments(ctx, "acme", "tasks", 0, nil))
	if len(all) != 5 || !strings.HasSuffix(all[0].GetIssueURL(), fmt.Sprint("/issues/", n)) {
		t.Errorf("%v", all)
	}
	if _, err := push.Issues.DeleteComment(ctx, "acme", "tasks", first.GetID()); err != nil {
		t.Error(err)
	}
	if _, _, err := push.Issues.GetComment(ctx, "acme", "tasks", first.GetID()); !strings.HasPrefix(status(err), "404") {
		t.Error(err)
	}
	s.Lock(n)
	if _, _, err := plain.Issues.CreateComment(ctx, "acme", "tasks", n, github.IssueCommentRequest{Body: "3"}); !strings.HasPrefix(status(err), "403") {
		t.Error(err)
	}
}

func TestRights(t *testing.T) {
	t.Parallel()
	s := Start(t)
	ctx := t.Context()
	as := func(r Rights) *github.Client { return client(t, s, s.Token(fmt.Sprint("user", r), r)) }
	// ask reads the repository and the account, and creates a reference.
	ask := func(c *github.Client) [3]string {
		_, _, repository := c.Repositories.Get(ctx, "acme", "tasks")
		_, _, account := c.Users.Get(ctx, "")
		_, _, ref := c.Git.CreateRef(ctx, "acme", "tasks", github.CreateRef{Ref: fmt.Sprint("refs/heads/x/", len(s.Requests())), SHA: s.Ref("heads/main")})
		return [3]string{status(repository), status(account), status(ref)}
	}
	const no, unknown = "403 Resource not accessible by personal access token", "404 Not Found"
	for rights, want := range map[Rights][3]string{
		None:         {unknown, "", unknown},
		Read:         {"", "", no},
		Issues:       {"", "", no},
		Push:         {},
		Installation: {"", "403 Resource not accessible by integration", ""},
	} {
		if got := ask(as(rights)); got != want {
			t.Errorf("%d: %q", rights, got)
		}
	}
	const bad = "401 Bad credentials"
	if got := ask(client(t, s, "ghp_stranger")); got != [3]string{bad, bad, bad} {
		t.Errorf("stranger: %q", got)
	}
	s.Archive()
	if got := ask(as(Push)); got[2] != "403 Repository was archived so is read-only." {
		t.Errorf("archived: %q", got)
	}
}

func get(t *testing.T, s *Server, token, path, tag string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/api/v3/repos/acme/tasks"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("If-None-Match", tag)
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	return answer, err
}

func TestConditionsAndLimits(t *testing.T) {
	t.Parallel()
	s := Start(t)
	token, left := s.Token("ann", Push), "X-Ratelimit-Remaining"
	n := fmt.Sprint("/issues/", s.Issue("One"))
	s.Limit(2)
	first, err := get(t, s, token, n, "") //nolint:bodyclose // get closes it.
	if err != nil || first.StatusCode != http.StatusOK || first.Header.Get(left) != "1" {
		t.Fatal(first, err)
	}
	for i, want := range []struct {
		code int
		left string
		tag  string
	}{{304, "1", first.Header.Get("ETag")}, {200, "0", ""}, {403, "0", ""}} {
		if got, err := get(t, s, token, n, want.tag); err != nil || got.StatusCode != want.code || got.Header.Get(left) != want.left { //nolint:bodyclose // get closes it.
			t.Errorf("%d: %v, %v", i, got, err)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c, n, ctx := client(t, s, s.Token("ann", Push)), s.Issue("One"), t.Context()
	comment := func() error {
		_, _, err := c.Issues.CreateComment(ctx, "acme", "tasks", n, github.IssueCommentRequest{Body: "1"})
		return err
	}
	suffer := func(f Fault) { s.Fail(func(*http.Request) Fault { return f }) }
	suffer(Fault{Status: 502, Body: "{}"})
	if err := comment(); err == nil || len(s.Comments(n)) != 0 {
		t.Errorf("%v, %v", err, s.Comments(n))
	}
	suffer(Fault{Lost: true})
	if err := comment(); err == nil || len(s.Comments(n)) != 1 {
		t.Errorf("%v, %v", err, s.Comments(n))
	}
	late := make(chan struct{})
	suffer(Fault{Late: late})
	done := make(chan error)
	go func() { done <- comment() }()
	for len(s.Writes()) < 3 {
		if len(s.Comments(n)) != 1 {
			t.Fatal("it was not late")
		}
	}
	close(late)
	if err := <-done; err != nil || len(s.Comments(n)) != 2 {
		t.Errorf("%v, %v", err, s.Comments(n))
	}
	s.Fail(nil)
	if err := comment(); err != nil {
		t.Error(err)
	}
	if want := "POST /issues/1/comments"; !slices.Equal(s.Requests(), []string{want, want, want, want}) {
		t.Errorf("%v", s.Requests())
	}
}

// noted is a test whose errors are looked at.
type noted struct {
	*testing.T
	mu     sync.Mutex
	errors []string
}

func (n *noted) Errorf(format string, arguments ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errors = append(n.errors, fmt.Sprintf(format, arguments...))
}

func TestBrokenDescriptionIsNoticed(t *testing.T) {
	t.Parallel()
	n := &noted{T: t}
	s := Start(n)
	token := s.Token("ann", Push)
	for _, path := range []string{"/issues?per_pag=1", "/issues?state=shut", "/pulls"} {
		if _, err := get(t, s, token, path, ""); err != nil { //nolint:bodyclose // get closes it.
			t.Error(err)
		}
	}
	if len(n.errors) != 3 {
		t.Errorf("%d are noticed: %q", len(n.errors), n.errors)
	}
	o, _ := described().find(http.MethodGet, "/repos/acme/tasks/git/ref/heads/main")
	for body, code := range map[string]int{`{"ref":"refs/heads/main"}`: 200, `{"message":"No"}`: 418} {
		if o.answer(code, []byte(body)) == nil {
			t.Errorf("%d %s is not noticed", code, body)
		}
	}
	o, _ = described().find(http.MethodPost, "/repos/acme/tasks/git/refs")
	if o.request(nil, []byte(`{"ref":"refs/heads/x"}`)) == nil {
		t.Error("a body without sha is not noticed")
	}
}
