package githublock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/githublock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/lock/record"
	"github.com/observerd/observerd/test/kit/githubtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(m)
}

// options are those of a provider of the server's issues, whose leases are short.
func options(s *githubtest.Server, token string) githublock.Options {
	return githublock.Options{
		Repository: githubtest.Repository, URL: s.URL(), TTL: time.Second, Heartbeat: 300 * time.Millisecond, Budget: 1 << 20,
		Token: func() (string, error) { return token, nil },
	}
}

func open(t *testing.T, o githublock.Options) *githublock.Provider {
	t.Helper()
	p, err := githublock.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Capabilities().Closer.Close() })
	return p
}

// harness connects the suite to providers, each with an account of its own. The keys of the
// suite are those of issues.
type harness struct {
	server *githubtest.Server

	mu     sync.Mutex
	all    []*githublock.Provider
	issues map[[2]string]int
}

func (h *harness) provider(t *testing.T) lock.Provider {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := open(t, options(h.server, h.server.Token(fmt.Sprint("worker-", len(h.all)), githubtest.Push)))
	p.Map(h.number)
	h.all = append(h.all, p)
	return p
}

func (h *harness) number(region, key string) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := [2]string{region, key}
	if h.issues[at] == 0 {
		h.issues[at] = h.server.Issue(key[:min(len(key), 100)])
	}
	return h.issues[at], nil
}

// expire lets a lease last for a moment, and everybody look at it as long.
func (h *harness) expire(t *testing.T, g lock.Grant) {
	const moment = 50 * time.Millisecond
	h.mu.Lock()
	all := append([]*githublock.Provider(nil), h.all...)
	h.mu.Unlock()
	records := all[0].Records()
	var err error
	for range 10 { // Answers may be lost.
		var r record.Record
		if r, err = records.Get(t.Context(), g.Region, g.Key); err == nil && (r.Term != g.Term || r.TTL == moment) {
			break
		}
		r.TTL = moment
		_, _ = records.Put(t.Context(), r)
	}
	for _, p := range all {
		_, failed := p.Find(t.Context(), lock.Query{Region: g.Region, Key: g.Key, Limit: 1})
		err = errors.Join(err, failed)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("expire a lease: %v", err)
	}
	time.Sleep(2 * moment)
}

func TestContract(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]bool{"": false, "answers lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(t *testing.T) locktest.Harness {
				h := &harness{server: githubtest.Start(t), issues: make(map[[2]string]int)}
				if faults {
					h.server.Fail(loseAnswers(4))
				}
				return locktest.Harness{Provider: func() lock.Provider { return h.provider(t) }, MinTTL: 2 * time.Second, Expire: h.expire, Unanswered: faults}
			})
		})
	}
}

// loseAnswers loses the answer to each nth request that writes. A commit without an answer is made
// again, and no more than twice, so those are answered.
func loseAnswers(n int64) func(r *http.Request) githubtest.Fault {
	var count atomic.Int64
	return func(r *http.Request) githubtest.Fault {
		writes := r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/git/commits")
		return githubtest.Fault{Lost: writes && count.Add(1)%n == 0}
	}
}
