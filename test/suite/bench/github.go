package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/github"
	"github.com/observerd/observerd/test/kit/githubtest"
)

const (
	// queueEvery is how often an issue comes.
	queueEvery = 300 * time.Millisecond
	queueGroup = "Locks of issues on GitHub"
)

// measureGitHubQueue measures how long issues wait for workers, and what they cost, at an endpoint
// that answers at once: the round trips to GitHub are not in it.
func measureGitHubQueue(ctx context.Context, s *suite) (figures []figure, err error) {
	for _, workers := range []int{1, 5, 20} {
		q := &queue{opened: make(map[string]time.Time), done: make(map[string]int)}
		if err := q.run(ctx, workers, 10*max(1, s.rounds)); err != nil {
			return nil, err
		}
		f := figure{
			group: queueGroup, what: fmt.Sprintf("wait of an issue for one of %d workers, p95", workers),
			value:  say("%s ms, %s writes an issue, %s done twice", milliseconds(quantile(q.waits, 0.95)), decimal(float64(q.writes)/float64(len(q.done)), 1), whole(float64(q.twice))),
			beside: say("a look each %s ms", milliseconds(5*time.Second)), goal: "none done twice", met: []bool{q.twice == 0},
		}
		s.progress("github-queue: %s: %s", f.what, f.value)
		figures = append(figures, f)
	}
	return figures, nil
}

// queue is what workers make of the issues that come.
type queue struct {
	mu     sync.Mutex
	broken []string
	opened map[string]time.Time
	done   map[string]int
	waits  []time.Duration
	twice  int
	writes int
}

func (q *queue) run(ctx context.Context, workers, issues int) error {
	server := githubtest.Open(func(format string, args ...any) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.broken = append(q.broken, fmt.Sprintf(format, args...))
	})
	defer server.End()
	token := server.Token("bot", githubtest.Push)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, workers+1)
	var work sync.WaitGroup
	for i := range workers {
		work.Go(func() { errs[i] = q.work(ctx, server.URL(), token, fmt.Sprint("worker-", i)) })
	}
	tick := time.NewTicker(queueEvery)
	defer tick.Stop()
	for opened := 0; q.left(issues) && ctx.Err() == nil; opened++ {
		if opened < issues {
			q.mu.Lock()
			q.opened[fmt.Sprint(server.Issue("import", "ready"))] = time.Now()
			q.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	stop()
	work.Wait()
	q.writes = len(server.Writes())
	if q.broken != nil {
		errs[workers] = errors.New(strings.Join(q.broken, "\n"))
	}
	return errors.Join(errs...)
}

func (q *queue) left(issues int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.done) < issues
}

// work closes issues until ctx ends.
func (q *queue) work(ctx context.Context, url, token, name string) (err error) {
	p, err := github.Open(ctx, github.Options{Repository: githubtest.Repository, URL: url, Budget: 1 << 20, Token: func() (string, error) { return token, nil }})
	if err != nil {
		return err
	}
	m, err := locks.Open(ctx, locks.Options{Provider: p, Node: name, Subjects: []string{"issue"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close(context.WithoutCancel(ctx))) }()
	for ctx.Err() == nil {
		task, err := m.AcquireNext(ctx, "label:ready", locks.Descriptor{Subject: "issue", Predicate: "processing"}, locks.Within(time.Minute))
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, locks.ErrNoTask) {
				continue
			}
			return err
		}
		q.mu.Lock()
		q.waits = append(q.waits, time.Since(q.opened[task.Name]))
		if q.done[task.Name]++; q.done[task.Name] > 1 {
			q.twice++
		}
		q.mu.Unlock()
		ctx := context.WithoutCancel(ctx)
		if err := errors.Join(task.Finish(ctx, locks.Closed), task.Release(ctx)); err != nil {
			return err
		}
	}
	return nil
}
