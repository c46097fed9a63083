package contend_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/github"
	"github.com/observerd/observerd/test/kit/githubtest"
)

// TestHistoriesOfIssues lets clients contend for an issue whose TTL does not run out, while each
// fifth answer to a write is lost, and asks porcupine whether one lock can have given the answers.
func TestHistoriesOfIssues(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	token, issue := s.Token("bot", githubtest.Push), s.Issue("import")
	var writes atomic.Int64
	s.Fail(func(r *http.Request) githubtest.Fault {
		return githubtest.Fault{Lost: r.Method != http.MethodGet && writes.Add(1)%5 == 0}
	})
	h := &history{from: time.Now()}
	var work sync.WaitGroup
	for i := range 5 {
		p, err := github.Open(t.Context(), github.Options{
			Repository: githubtest.Repository, URL: s.URL(), TTL: time.Minute, Budget: 1 << 20, Token: func() (string, error) { return token, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		work.Go(func() {
			defer p.Capabilities().Closer.Close()
			for range 40 {
				h.lockIssue(t, p, i, issue)
				time.Sleep(rand.N(5 * time.Millisecond))
			}
		})
	}
	work.Wait()
	if h.judge(t) == porcupine.Unknown {
		t.Error("the history was not decided in time")
	}
}

// lockIssue acquires the lock once, renews it perhaps, and releases it.
func (h *history) lockIssue(t *testing.T, p locks.Provider, client, issue int) {
	call := time.Now()
	g, err := p.Acquire(t.Context(), lock.Request{Region: "r", Key: fmt.Sprint("issue:", issue), Node: fmt.Sprint(client)})
	switch {
	case errors.Is(err, lock.ErrHeld):
		h.asked(client, step{what: "acquire", mode: lock.Exclusive, term: "none"}, call, outcome{known: true})
		return
	case err != nil: // It may be there, until its TTL is over.
		term := fmt.Sprintf("?%d", anonymous.Add(1))
		h.add(client, step{what: "acquire", mode: lock.Exclusive, term: term}, call, outcome{}, time.Hour)
		h.add(client, step{what: "release", term: term}, call, outcome{}, time.Hour)
		return
	}
	h.asked(client, step{what: "acquire", mode: lock.Exclusive, term: g.Term}, call, outcome{known: true, done: true, fence: g.Fence})
	if rand.IntN(2) == 0 {
		call = time.Now()
		renewals, err := p.Renew(t.Context(), []lock.Grant{g})
		h.asked(client, step{what: "renew", term: g.Term}, call, outcome{known: err == nil, done: err == nil && renewals[0] == lock.Renewed})
	}
	call = time.Now()
	err = p.Release(t.Context(), g)
	// A release whose answer was lost finds the lease of the next holder when it asks again.
	h.asked(client, step{what: "release", term: g.Term}, call, outcome{known: err == nil, done: err == nil})
}
