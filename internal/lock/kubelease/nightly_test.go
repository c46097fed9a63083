//go:build nightly

package kubelease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/kubelease"
	"github.com/observerd/observerd/test/kit/kubeapitest"
)

// TestOnKubernetes is [TestContract] and [TestStories] on a real API server. It keeps the
// endpoint of package kubetest honest.
func TestOnKubernetes(t *testing.T) {
	t.Parallel()
	s := kubeapitest.Start(t)
	t.Run("contract", func(t *testing.T) { contract(t, s) })
	for name, story := range stories() {
		t.Run(name, func(t *testing.T) { story(t, s) })
	}
}

// TestFailuresOfKubernetes has a holder while its API server is killed, stands still, and is
// restored from an older etcd.
func TestFailuresOfKubernetes(t *testing.T) {
	t.Parallel()
	s := kubeapitest.Start(t)
	p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, "admin"), Namespace: s.Namespace(t)})
	renews := func(g lock.Grant, want lock.Renewal) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if got, err := p.Renew(ctx, []lock.Grant{g}); got[0] != want {
			t.Errorf("renewal: %v, %v, want %v", got, err, want)
		}
	}
	fails := func(key string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Acquire(ctx, want(key)); err == nil || errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost) {
			t.Errorf("acquire: %v", err)
		}
	}
	g := acquire(t, p, want("1"))
	s.Kill(t)
	fails("2")
	renews(g, lock.Unknown)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	renews(g, lock.Renewed)
	resume := s.Pause(t)
	fails("3")
	renews(g, lock.Unknown)
	resume()
	renews(g, lock.Renewed)
	restore := s.Snapshot(t)
	renews(g, lock.Renewed)
	later := acquire(t, p, want("4"))
	restore()
	renews(later, lock.Lost)
	renews(g, lock.Renewed) // By the version of the copy.
	release(t, p, g)
}
