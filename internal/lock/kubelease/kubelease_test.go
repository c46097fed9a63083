package kubelease_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/kubelease"
	"github.com/observerd/observerd/test/kit/kubetest"
	"github.com/observerd/observerd/test/kit/netfault"
)

// TestCalls counts what is asked: a lock is two calls, and a renewal is one.
func TestCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		clear bool
		first int // calls of the first lock, and then of each other one
		next  int
	}{{false, 2, 2}, {true, 2, 4}} {
		s := kubetest.Start(t)
		p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: s.Namespace(t), Clear: c.clear})
		calls := func(want int, what string, do func()) {
			t.Helper()
			before := s.Requests()
			do()
			if n := s.Requests() - before; n != want {
				t.Errorf("cleared %t: %s took %d calls, want %d", c.clear, what, n, want)
			}
		}
		calls(c.first, "the first lock", func() { release(t, p, acquire(t, p, want("1"))) })
		calls(c.next, "the next lock", func() { release(t, p, acquire(t, p, want("1"))) })
		g := acquire(t, p, want("2"))
		calls(1, "a renewal", func() {
			if renewals, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || renewals[0] != lock.Renewed {
				t.Error(renewals, err)
			}
		})
		calls(1, "a refusal", func() { held(t, p, want("2"), "pod-1") })
	}
}

// TestServerThatIsDown has errors that are neither "held" nor "lost", and a lock again when it is
// back.
func TestServerThatIsDown(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	between := netfault.Start(t, s.Listener.Addr().String())
	p := open(t, kubelease.Options{Kubeconfig: s.KubeconfigAt(t, between.Addr(), kubetest.Admin), Namespace: s.Namespace(t)})
	g := acquire(t, p, want("1"))
	between.Refuse(true)
	between.Reset()
	_, err := p.Acquire(t.Context(), want("2"))
	if err == nil || errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("acquire: %v", err)
	}
	if renewals, err := p.Renew(t.Context(), []lock.Grant{g}); err == nil || renewals[0] != lock.Unknown {
		t.Errorf("renewal: %v, %v, want an unknown one", renewals, err)
	}
	if err := p.Release(t.Context(), g); err == nil || errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v", err)
	}
	between.Refuse(false)
	release(t, p, g)
}

// TestRestoreOfEtcd brings an older state back: the lease is lost, and its number comes again.
func TestRestoreOfEtcd(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: s.Namespace(t)})
	restore := s.Snapshot(t)
	g := acquire(t, p, want("1"))
	restore()
	if renewals, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || renewals[0] != lock.Lost {
		t.Errorf("renewal after a restore: %v, %v", renewals, err)
	}
	if next := acquire(t, p, want("1")); next.Fence > g.Fence {
		t.Errorf("fence %d after %d: docs/locks/kubernetes.md says that it may come again", next.Fence, g.Fence)
	}
}

// TestOddTTLs has a warning for the first one.
func TestOddTTLs(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	var log bytes.Buffer
	p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: s.Namespace(t), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	acquire(t, p, want("1"))
	if log.Len() > 0 {
		t.Errorf("a TTL of 30s: %s", &log)
	}
	for key, ttl := range map[string]time.Duration{"2": 9 * time.Second, "3": 61 * time.Second} {
		r := want(key)
		r.TTL = ttl
		acquire(t, p, r)
	}
	if n := strings.Count(log.String(), "should have a TTL from 10s to 1m"); n != 1 {
		t.Errorf("%d warnings: %s", n, &log)
	}
}

// TestOpen is refused what cannot be reached, without a word of what the file has.
func TestOpen(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	good := s.Kubeconfig(t, kubetest.Admin)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte(`{"users":[{"user":{"token":"s3cret"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options kubelease.Options
		want    string
	}{
		"no kubeconfig":     {kubelease.Options{}, "no service account of a pod was found; outside of a cluster, set kubeconfig to a file"},
		"no such file":      {kubelease.Options{Kubeconfig: broken + "-not"}, "kubeconfig: "},
		"no such context":   {kubelease.Options{Kubeconfig: good, Context: "other"}, `kubeconfig: context "other" does not exist`},
		"a file of no form": {kubelease.Options{Kubeconfig: broken}, "kubeconfig: "},
	} {
		if _, err := kubelease.Open(c.options); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	p := open(t, kubelease.Options{Kubeconfig: good})
	if p.Namespace() != "default" {
		t.Errorf("the namespace is %q", p.Namespace())
	}
}

// TestUnknownAccount has a token that the server does not know, which no error repeats.
func TestUnknownAccount(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	path := s.Kubeconfig(t, kubetest.Admin)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(text, []byte("token-admin"), []byte("s3cret"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, kubelease.Options{Kubeconfig: path, Namespace: s.Namespace(t)})
	_, err = p.Acquire(t.Context(), want("1"))
	if !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "the API server does not know the account (401)") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("acquire: %v", err)
	}
}

// report keeps what is refused.
type report map[string]string

func (r report) Reject(key, reason string) { r[key] = reason }
func (r report) Warn(key, reason string)   { r[key] = reason }

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings kubelease.Settings
		key      string
	}{
		"nothing":             {kubelease.Settings{}, ""},
		"all":                 {kubelease.Settings{Namespace: "orders", Kubeconfig: "/k", Context: "test", Prefix: "shop.example-"}, ""},
		"a namespace":         {kubelease.Settings{Namespace: "Orders"}, "namespace"},
		"a context alone":     {kubelease.Settings{Context: "test"}, "context"},
		"a prefix":            {kubelease.Settings{Prefix: "Shop_"}, "prefix"},
		"a prefix of a point": {kubelease.Settings{Prefix: "shop..x"}, "prefix"},
		"a long prefix":       {kubelease.Settings{Prefix: strings.Repeat("a", 41)}, "prefix"},
	} {
		r := make(report)
		c.settings.Check(r)
		if c.key == "" && len(r) > 0 || c.key != "" && (len(r) != 1 || r[c.key] == "") {
			t.Errorf("%s: refused are %v, want %q", name, r, c.key)
		}
	}
}
