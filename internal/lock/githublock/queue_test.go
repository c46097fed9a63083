package githublock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/test/kit/githubtest"
)

const ready = "label:ready"

func keyOf(task string) string { return "issue:" + task }

func next(t *testing.T, q lock.Queue, query string) []string {
	t.Helper()
	tasks, err := q.Next(t.Context(), query, "DEFAULT", keyOf)
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

func texts(issues ...int) (all []string) {
	for _, n := range issues {
		all = append(all, strconv.Itoa(n))
	}
	return all
}

func TestQueueOrder(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	p := worker(t, s, "bot")
	for _, login := range []string{"person", "other"} {
		s.Token(login, githubtest.Push)
	}
	oldest := s.Issue("oldest", "ready")
	s.Issue("another label", "later")
	low, high := s.Issue("low", "ready", "priority:low"), s.Issue("high", "priority:high", "ready")
	numbered := s.Issue("numbered", "Ready", "Priority: 1", "priority:9")
	s.Issue("failed", "ready", "failed")
	s.Close(s.Issue("closed", "ready"))
	s.PullRequest("ready")
	s.Assign(s.Issue("a person's", "ready"), "person")
	left := s.Issue("left by a worker that could not unassign it", "ready")
	s.Assign(left, "bot")
	taken := s.Issue("taken", "ready")
	acquire(t, worker(t, s, "other"), want(taken, "other"))
	s.Issue("both", "ready", "linux")
	if got, want := next(t, p, ready), texts(high, numbered, low, oldest, left, taken+1); !slices.Equal(got, want) {
		t.Errorf("next are %v, want %v", got, want)
	}
	if got := next(t, p, "label:ready,linux"); !slices.Equal(got, texts(taken+1)) {
		t.Errorf("with both labels: %v", got)
	}
	for _, query := range []string{"", "ready", "label:", "label:a,", "author:me"} {
		if _, err := p.Next(t.Context(), query, "DEFAULT", keyOf); err == nil {
			t.Errorf("the query %q is allowed", query)
		}
	}
}

// More issues and locks than a page has.
func TestQueueOfManyIssues(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	p := worker(t, s, "bot")
	for i := range 230 {
		s.Issue(fmt.Sprint(i), "ready")
	}
	acquire(t, p, want(1, "a"))
	if got := next(t, p, ready); len(got) != 229 || got[0] != "2" || got[228] != "230" {
		t.Errorf("%d issues are next: %v", len(got), got)
	}
}

func TestEndsOfATask(t *testing.T) {
	t.Parallel()
	const ready = "label:ready, area/c#?x"
	s := githubtest.Start(t)
	p := worker(t, s, "bot")
	for end, c := range map[lock.End]struct {
		state  string
		labels []string
	}{
		lock.Done:   {"open", []string{"other"}},
		lock.Closed: {"closed", []string{"area/c#?x", "other", "ready"}},
		lock.Failed: {"open", []string{"area/c#?x", "failed", "other", "ready"}},
	} {
		task := texts(s.Issue("import", "ready", "other", "area/c#?x"))[0]
		if due, err := p.Due(t.Context(), task, ready); !due || err != nil {
			t.Errorf("%v: before: %t, %v", end, due, err)
		}
		for range 2 { // The answer to the first may be lost.
			if err := p.Finish(t.Context(), task, ready, end); err != nil {
				t.Error(err)
			}
		}
		n, _ := strconv.Atoi(task)
		labels := s.Labels(n)
		slices.Sort(labels)
		if due, err := p.Due(t.Context(), task, ready); due || err != nil || s.State(n) != c.state || !slices.Equal(labels, c.labels) {
			t.Errorf("%v: due %t, %v, %s, %v", end, due, err, s.State(n), labels)
		}
	}
	if got := next(t, p, ready); len(got) != 0 {
		t.Errorf("next are %v", got)
	}
}

// TestWorkersShareTheQueue has 20 workers for 20 issues, and for 3. Each issue is done once.
func TestWorkersShareTheQueue(t *testing.T) {
	t.Parallel()
	for _, issues := range []int{20, 3} {
		t.Run(fmt.Sprint(issues), func(t *testing.T) {
			t.Parallel()
			s := githubtest.Start(t)
			for i := range issues {
				s.Issue(fmt.Sprint(i), "ready")
			}
			token := s.Token("bot", githubtest.Push)
			var mu sync.Mutex
			done, working := make(map[string]int), make(map[string]bool)
			var work sync.WaitGroup
			for i := range 20 {
				m, err := locks.Open(t.Context(), locks.Options{Provider: open(t, options(s, token)), Node: fmt.Sprint("worker-", i), Subjects: []string{"issue"}})
				if err != nil {
					t.Fatal(err)
				}
				work.Go(func() {
					defer func() {
						if err := m.Close(context.WithoutCancel(t.Context())); err != nil {
							t.Error(err)
						}
					}()
					for {
						task, err := m.AcquireNext(t.Context(), ready, locks.Descriptor{Subject: "issue", Predicate: "processing"}, locks.FailFast())
						if errors.Is(err, locks.ErrNoTask) {
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						if working[task.Name] || done[task.Name] > 0 {
							t.Errorf("issue %s is done twice", task.Name)
						}
						working[task.Name] = true
						mu.Unlock()
						time.Sleep(5 * time.Millisecond)
						mu.Lock()
						working[task.Name] = false
						done[task.Name]++
						mu.Unlock()
						if err := errors.Join(task.Finish(t.Context(), locks.Closed), task.Release(t.Context())); err != nil {
							t.Error(err)
						}
					}
				})
			}
			work.Wait()
			if len(done) != issues {
				t.Errorf("%d of %d issues are done", len(done), issues)
			}
			writes := 0
			for _, call := range s.Requests() {
				if call[:4] != "GET " {
					writes++
				}
			}
			t.Logf("%d issues, %d requests that write: %.1f each", issues, writes, float64(writes)/float64(issues))
		})
	}
}

func TestQueueIsAProvidersOwn(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	m, err := locks.Open(t.Context(), locks.Options{Provider: worker(t, s, "bot"), Node: "a", Subjects: []string{"issue"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.WithoutCancel(t.Context())) }()
	began := time.Now()
	if _, err := m.AcquireNext(t.Context(), ready, locks.Descriptor{Subject: "issue", Predicate: "processing"}, locks.FailFast()); !errors.Is(err, locks.ErrNoTask) || !errors.Is(err, locks.ErrHeld) || time.Since(began) > 4*time.Second {
		t.Errorf("an empty queue: %v after %s", err, time.Since(began))
	}
}

func TestSweepDeletesCommentsOfEndedTerms(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	p, n := worker(t, s, "bot"), s.Issue("import")
	release(t, p, acquire(t, p, want(n, "a")))
	g := acquire(t, p, want(n, "b"))
	s.Comment(n, "person", "a person's, of {\"lock\":{}}")
	sweep := func(before time.Time) int {
		t.Helper()
		removed, err := p.Capabilities().Sweep(t.Context(), "DEFAULT", before)
		if err != nil {
			t.Error(err)
		}
		return removed
	}
	if n := sweep(time.Now().Add(-time.Hour)); n != 0 {
		t.Errorf("%d comments are removed that are new", n)
	}
	if n := sweep(time.Now().Add(time.Hour)); n != 1 {
		t.Errorf("%d comments are removed", n)
	}
	if left := s.Comments(n); len(left) != 2 {
		t.Errorf("left are %q", left)
	}
	renew(t, p, g, lock.Renewed)
}

// A worker dies, and another one that looks at the queue for as long as the TTL gets its issue.
func TestIssueOfADeadWorkerIsNext(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	o := options(s, s.Token("bot", githubtest.Push))
	r := want(s.Issue("import", "ready"), "dead")
	r.TTL = o.TTL
	dead := acquire(t, open(t, o), r)
	alive := open(t, o)
	for began := time.Now(); ; time.Sleep(o.TTL / 10) {
		if len(next(t, alive, ready)) == 1 {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("the issue does not come again")
		}
	}
	if g := acquire(t, alive, want(1, "alive")); !g.Recovered || g.Fence <= dead.Fence {
		t.Errorf("taken over: %+v", g)
	}
}
