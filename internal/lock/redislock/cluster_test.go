package redislock_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/redistest"
)

func clusterClient(t *testing.T, nodes []*redistest.Server) *redis.ClusterClient {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Address()}})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	p := open(t, redislock.Options{URL: nodes[0].URL(), Nodes: []string{nodes[1].Address()}, Cluster: true})
	var grants []lock.Grant
	for i := range 30 { // on all nodes
		grants = append(grants, acquire(t, p, want(fmt.Sprint("page:", i))))
	}
	refused(t, p, want("page:0"))
	found, err := p.Find(t.Context(), lock.Query{Region: "r", Limit: 99})
	if err != nil || len(found) != len(grants) {
		t.Errorf("%d found, %v, want %d", len(found), err, len(grants))
	}
	got, err := p.Renew(t.Context(), grants)
	for i := range grants {
		if err != nil || got[i] != lock.Renewed {
			t.Fatalf("renewals %v, %v", got, err)
		}
		release(t, p, grants[i])
	}
	set := []lock.Request{want("fileset:{fs-1}"), want("page:{fs-1}:3")}
	if grants, err = p.AcquireAll(t.Context(), set); err != nil {
		t.Error(err)
	}
	refused(t, p, set[1])
	for _, g := range grants {
		release(t, p, g)
	}
	if _, err := p.AcquireAll(t.Context(), []lock.Request{want("fileset:fs-1"), want("page:fs-1:3")}); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("a set of two slots: %v", err)
	}
	for _, key := range []string{"a}b", "{}x", "x{}y"} {
		if _, err := p.Acquire(t.Context(), want(key)); !errors.Is(err, lock.ErrUnsupported) {
			t.Errorf("key %s: %v", key, err)
		}
	}
	for _, key := range []string{"{a}b", "a{b", "a{b}c{d}", "{a}{}", "a b{c d}"} {
		reads := want(key)
		reads.Mode = lock.Shared
		release(t, p, acquire(t, p, reads))
	}
	fails(t, open(t, redislock.Options{URL: nodes[0].URL()}), "cluster: true") // Its key is another node's.
}

// TestKeysWithBraces has names which are none in a cluster, and companions that are apart.
func TestKeysWithBraces(t *testing.T) {
	t.Parallel()
	p := open(t, redislock.Options{URL: database(t)})
	var grants []lock.Grant
	for _, key := range []string{"a}b", "{}x", "x{}y", "{a}b", "{a}c", "a", "{a}", "a{", "a}"} {
		reads := want(key)
		reads.Mode = lock.Shared
		g := acquire(t, p, reads)
		if g.Recovered {
			t.Errorf("%s has the fence of another key", key)
		}
		grants = append(grants, g)
	}
	for _, g := range grants {
		refused(t, p, want(g.Key))
		release(t, p, g)
		release(t, p, acquire(t, p, want(g.Key)))
	}
}

// TestLostAnswerInACluster has the client of a cluster, which has its own rules of repetition,
// release a lock: the loss of the answer is no loss of the lock.
func TestLostAnswerInACluster(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, 1)[0]
	proxy := netfault.Start(t, s.Address())
	_, port, _ := bytes.Cut([]byte(proxy.Addr()), []byte(":"))
	s.Must(t, "CONFIG SET cluster-announce-port "+string(port))
	p := open(t, redislock.Options{URL: "redis://" + proxy.Addr(), Cluster: true})
	release(t, p, acquire(t, p, want("a")))
	g := acquire(t, p, want("a"))
	var lost atomic.Bool
	proxy.Inspect(func(request []byte) netfault.Fault {
		return netfault.Fault{LoseAnswer: bytes.Contains(request, []byte(g.Term)) && !lost.Swap(true)}
	})
	if err := p.Release(t.Context(), g); err == nil || errors.Is(err, lock.ErrLost) {
		t.Errorf("release that was not answered: %v, want no loss", err)
	}
	if got := proxy.Stats().AnswersLost; got != 1 {
		t.Errorf("%d answers were lost, want 1", got)
	}
	release(t, p, acquire(t, p, want("a")))
	reads := want("b")
	reads.Mode, reads.TTL = lock.Shared, time.Hour
	release(t, p, acquire(t, p, reads))
}

// TestServersHaveCertificatesOfTheirOwn has a URL that names one of several servers.
func TestServersHaveCertificatesOfTheirOwn(t *testing.T) {
	t.Parallel()
	named := &tls.Config{ServerName: "locks", MinVersion: tls.VersionTLS12}
	for name, tc := range map[string]struct {
		o    redislock.Options
		want string
	}{
		"alone":             {redislock.Options{}, "host-1"},
		"a cluster":         {redislock.Options{Cluster: true}, ""},
		"sentinels":         {redislock.Options{Master: "m", TLS: &tls.Config{MinVersion: tls.VersionTLS12}}, ""},
		"alone, named":      {redislock.Options{TLS: named}, "locks"},
		"a cluster, named":  {redislock.Options{Cluster: true, TLS: named}, "locks"},
		"alone, with roots": {redislock.Options{TLS: &tls.Config{MinVersion: tls.VersionTLS12}}, "host-1"},
	} {
		tc.o.URL = "rediss://host-1:6379"
		if got, err := redislock.ServerName(tc.o); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tc.want)
		}
	}
}
