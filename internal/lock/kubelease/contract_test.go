package kubelease_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/kubelease"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/test/kit/kubetest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(m)
}

// server is an API server, real or not.
type server interface {
	Kubeconfig(t testing.TB, user string) string
	Namespace(t testing.TB) string
	Grant(t testing.TB, namespace, user string, verbs ...string)
}

func open(t *testing.T, o kubelease.Options) *kubelease.Provider {
	t.Helper()
	p, err := kubelease.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// harness connects the suite to providers, which have all seen a lease that they are to see end.
type harness struct {
	options kubelease.Options

	mu  sync.Mutex
	all []*kubelease.Provider
}

func (h *harness) provider(t *testing.T) lock.Provider {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := open(t, h.options)
	h.all = append(h.all, p)
	return p
}

// expire lets a lease last for a second, and everybody look at it as long.
func (h *harness) expire(t *testing.T, g lock.Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	leases := h.all[0].Records()
	r, err := leases.Get(t.Context(), g.Region, g.Key)
	if err == nil && r.Term == g.Term {
		r.TTL = time.Second
		_, err = leases.Put(t.Context(), r)
	}
	for _, p := range h.all {
		_, failed := p.Find(t.Context(), lock.Query{Region: g.Region, Key: g.Key, Limit: 1})
		err = errors.Join(err, failed)
	}
	if err != nil {
		t.Errorf("expire a lease: %v", err)
	}
	time.Sleep(time.Second + 100*time.Millisecond)
}

// contract runs the contract in a namespace for each story.
func contract(t *testing.T, s server) {
	for name, cleared := range map[string]bool{"deleted": false, "cleared": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(t *testing.T) locktest.Harness {
				h := &harness{options: kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: s.Namespace(t), Clear: cleared}}
				return locktest.Harness{Provider: func() lock.Provider { return h.provider(t) }, MinTTL: 2 * time.Second, Expire: h.expire}
			})
		})
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	contract(t, kubetest.Start(t))
}
