package githublock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v93/github"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/githublock"
	"github.com/observerd/observerd/test/kit/githubtest"
)

// repository is one of the endpoint, or one on GitHub.
type repository interface {
	Issue(title string, labels ...string) int
	Assignees(n int) []string
	Comments(n int) []string
	Ref(name string) string
	Message(sha string) string
}

// place is a repository, and how its issues are locked.
type place struct {
	repository
	options githublock.Options
}

var stories = map[string]func(t *testing.T, s place){
	"people see who has an issue": peopleSee,
	"a heartbeat keeps the lock":  heartbeatKeeps,
	"a holder notices a steal":    holderNoticesASteal,
}

func TestStories(t *testing.T) {
	t.Parallel()
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.Start(t)
			story(t, place{s, options(s, s.Token("bot", githubtest.Push))})
		})
	}
}

// TestRealStories tells the stories on GitHub, in the repository that OBSERVERD_TEST_GITHUB names,
// with the token in GH_TOKEN. It leaves issues there.
func TestRealStories(t *testing.T) {
	name := os.Getenv("OBSERVERD_TEST_GITHUB")
	if name == "" {
		t.Skip("OBSERVERD_TEST_GITHUB names no repository")
	}
	client, err := github.NewClient(github.WithAuthToken(os.Getenv("GH_TOKEN")))
	if err != nil {
		t.Fatal(err)
	}
	owner, repo, _ := strings.Cut(name, "/")
	o := githublock.Options{
		Repository: name, TTL: 30 * time.Second, Heartbeat: 8 * time.Second,
		Token: func() (string, error) { return os.Getenv("GH_TOKEN"), nil },
	}
	for name, story := range stories { // One after the other: GitHub asks for that.
		t.Run(name, func(t *testing.T) { story(t, place{real{t, client, owner, repo}, o}) })
	}
}

// real is a repository on GitHub.
type real struct {
	t           *testing.T
	client      *github.Client
	owner, name string
}

func (r real) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r real) Issue(title string, labels ...string) int {
	issue, _, err := r.client.Issues.Create(r.t.Context(), r.owner, r.name, github.CreateIssueRequest{Title: "observerd: " + title, Labels: labels})
	r.must(err)
	return issue.GetNumber()
}

func (r real) Assignees(n int) (logins []string) {
	issue, _, err := r.client.Issues.Get(r.t.Context(), r.owner, r.name, n)
	r.must(err)
	for _, u := range issue.Assignees {
		logins = append(logins, u.GetLogin())
	}
	return logins
}

func (r real) Comments(n int) (bodies []string) {
	for c, err := range r.client.Issues.ListCommentsIter(r.t.Context(), r.owner, r.name, n, nil) {
		r.must(err)
		bodies = append(bodies, c.GetBody())
	}
	return bodies
}

func (r real) Ref(name string) string {
	ref, _, err := r.client.Git.GetRef(r.t.Context(), r.owner, r.name, name)
	r.must(err)
	return ref.GetObject().GetSHA()
}

func (r real) Message(sha string) string {
	c, _, err := r.client.Git.GetCommit(r.t.Context(), r.owner, r.name, sha)
	r.must(err)
	return c.GetMessage()
}

// said is what a comment says.
type said struct {
	WorkerID      string            `json:"worker_id"`
	NodeID        string            `json:"node_id"`
	ClaimedAt     time.Time         `json:"claimed_at"`
	HeartbeatLast time.Time         `json:"heartbeat_last"`
	ReleasedAt    time.Time         `json:"released_at"`
	TaskInfo      map[string]string `json:"task_info"`
}

func comments(t *testing.T, s repository, issue int) (all []said) {
	t.Helper()
	for _, body := range s.Comments(issue) {
		var c struct{ Lock said }
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Errorf("comment %s: %v", body, err)
		}
		all = append(all, c.Lock)
	}
	return all
}

func peopleSee(t *testing.T, s place) {
	p, n := open(t, s.options), s.Issue("people see who has an issue")
	g := acquire(t, p, want(n, "host-1"))
	first := comments(t, s, n)
	if got := s.Assignees(n); len(got) != 1 || len(first) != 1 {
		t.Fatalf("assignees %v, comments %+v", got, first)
	}
	task := map[string]string{"complexity": "high", "estimated_duration": "", "task_type": "", "priority": ""}
	if c := first[0]; c.WorkerID != g.Term || c.NodeID != "host-1" || c.ClaimedAt.IsZero() || fmt.Sprint(c.TaskInfo) != fmt.Sprint(task) {
		t.Errorf("the comment says %+v", c)
	}
	renew(t, p, g, lock.Renewed)
	if now := comments(t, s, n); len(now) != 1 || !now[0].HeartbeatLast.After(first[0].HeartbeatLast) {
		t.Errorf("after a heartbeat the comments are %+v", now)
	}
	message := s.Message(s.Ref(p.RefOf(n)))
	for _, part := range []string{"held by host-1", `"state":"held"`, g.Term, `"node":"host-1"`} {
		if !strings.Contains(message, part) {
			t.Errorf("the commit has no %s: %s", part, message)
		}
	}
	release(t, p, g)
	if now := comments(t, s, n); len(now) != 1 || now[0].ReleasedAt.IsZero() || len(s.Assignees(n)) != 0 {
		t.Errorf("after the release: comments %+v, assignees %v", now, s.Assignees(n))
	}
	if again := acquire(t, p, want(n, "host-1")); again.Fence != 3 || g.Fence != 1 {
		t.Errorf("fences %d and %d", g.Fence, again.Fence)
	}
}

// A holder lives as long as its comment is edited, though nothing moves its reference.
func heartbeatKeeps(t *testing.T, s place) {
	o := s.options
	holder, other, n := open(t, o), open(t, o), s.Issue("a heartbeat keeps the lock")
	r := want(n, "holder")
	r.TTL = o.TTL
	g := acquire(t, holder, r)
	ref := s.Ref(holder.RefOf(n))
	refused := func() *lock.HeldError {
		_, err := other.Acquire(t.Context(), want(n, "other"))
		held, _ := errors.AsType[*lock.HeldError](err)
		return held
	}
	var renewed time.Time
	for began := time.Now(); time.Since(began) < 2*o.TTL; time.Sleep(o.Heartbeat) {
		renewed = time.Now()
		renew(t, holder, g, lock.Renewed)
		if held := refused(); held == nil || held.Node != "holder" || held.Left <= 0 || held.Left > o.TTL {
			t.Fatalf("another is told %+v", held)
		}
	}
	if s.Ref(holder.RefOf(n)) != ref {
		t.Error("heartbeats move the reference")
	}
	for refused() != nil { // The holder is silent now. On a busy machine it has been for longer than a heartbeat.
		time.Sleep(o.TTL / 20)
	}
	if took := time.Since(renewed); took < o.TTL-o.Heartbeat {
		t.Errorf("the lock was taken over after %s", took)
	}
	renew(t, holder, g, lock.Lost)
	if err := holder.Release(t.Context(), g); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a lock that another has: %v", err)
	}
	if len(s.Assignees(n)) != 1 {
		t.Error("a former holder takes the assignee of the present one away")
	}
}

// A person gives the lock of a holder that lives to another.
func holderNoticesASteal(t *testing.T, s place) {
	holder, thief, n := open(t, s.options), open(t, s.options), s.Issue("a holder notices a steal")
	g := acquire(t, holder, want(n, "holder"))
	found, err := thief.Find(t.Context(), lock.Query{Region: "DEFAULT", Key: g.Key, Limit: 2})
	if err != nil || len(found) != 1 || found[0].Node != "holder" {
		t.Fatal(err, found)
	}
	stolen, err := thief.Capabilities().Stealer.Steal(t.Context(), want(n, "thief"), found[0], lock.By{})
	if err != nil || stolen.Fence <= g.Fence {
		t.Fatal(err, stolen.Fence)
	}
	renew(t, holder, g, lock.Lost)
	renew(t, thief, stolen, lock.Renewed)
	if all := comments(t, s, n); len(all) != 2 || all[1].NodeID != "thief" {
		t.Errorf("comments %+v", all)
	}
}
