package kubelease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/kubelease"
	"github.com/observerd/observerd/internal/lock/lockkind"
	"github.com/observerd/observerd/test/kit/kubetest"
)

// stories are what happens beside the contract.
func stories() map[string]func(t *testing.T, s server) {
	return map[string]func(t *testing.T, s server){
		"the holder of another program keeps ours out":      foreignHolder,
		"another program takes a Lease that we have left":   takenByAnother,
		"what is not allowed is named, with what to grant":  forbidden,
		"a namespace that is missing is named":              missingNamespace,
		"a probe finds what is missing, and writes nothing": probes,
		"what the dead have left is swept":                  swept,
		"a holder loses a Lease that is gone":               gone,
	}
}

func TestStories(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	for name, story := range stories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, s)
		})
	}
}

func want(key string) lock.Request {
	return lock.Request{Key: key, Region: "orders", TTL: 30 * time.Second, Node: "pod-1", Descriptor: "lock:exclusive:order:paying:" + key}
}

func acquire(t *testing.T, p *kubelease.Provider, r lock.Request) lock.Grant {
	t.Helper()
	g, err := p.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func release(t *testing.T, p *kubelease.Provider, g lock.Grant) {
	t.Helper()
	if err := p.Release(t.Context(), g); err != nil {
		t.Fatal(err)
	}
}

func held(t *testing.T, p *kubelease.Provider, r lock.Request, by string) {
	t.Helper()
	_, err := p.Acquire(t.Context(), r)
	if found, ok := errors.AsType[*lock.HeldError](err); !ok || found.Node != by {
		t.Errorf("acquire: %v, want one that is held by %s", err, by)
	}
}

// leader writes a Lease as client-go's leader election does.
func leader(t *testing.T, p *kubelease.Provider, name, identity string, change func(*coordination.Lease)) {
	t.Helper()
	now := meta.NowMicro()
	err := p.Edit(t.Context(), name, func(l *coordination.Lease) {
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &identity, new(int32(1))
		l.Spec.AcquireTime, l.Spec.RenewTime, l.Spec.LeaseTransitions = &now, &now, new(int32(1))
		if change != nil {
			change(l)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func foreignHolder(t *testing.T, s server) {
	p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: s.Namespace(t), Names: kubelease.Plain})
	leader(t, p, "node-worker-1", "other-pod_1", nil)
	held(t, p, want("Node:worker-1"), "other-pod_1")
	found, err := p.Find(t.Context(), lock.Query{Region: "orders", Key: "Node:worker-1", Limit: 1})
	if err != nil || len(found) != 1 || found[0].Descriptor != "lock:exclusive:Node:unknown:worker-1" {
		t.Errorf("found is %+v, %v", found, err)
	}
	time.Sleep(time.Second + 100*time.Millisecond)
	g := acquire(t, p, want("Node:worker-1"))
	if !g.Recovered {
		t.Error("what another program has left was not taken over")
	}
	release(t, p, g)
	leader(t, p, "node-worker-2", "other-pod_1", func(l *coordination.Lease) { l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = nil, nil })
	if g := acquire(t, p, want("Node:worker-2")); g.Recovered {
		t.Error("a Lease without a holder was held")
	}
	leader(t, p, "node-worker-3", "other-pod_1", func(l *coordination.Lease) { l.Spec.LeaseDurationSeconds = nil })
	leader(t, p, "node-worker-4", "other-pod_1", func(l *coordination.Lease) { // Its clock is wrong.
		l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = new(meta.NewMicroTime(time.Now().Add(-time.Hour))), new(int32(30))
	})
	held(t, p, want("Node:worker-4"), "other-pod_1")
	r := want("Node:worker-3")
	r.TTL = 2 * time.Second
	held(t, p, r, "other-pod_1")
	time.Sleep(r.TTL + 100*time.Millisecond)
	acquire(t, p, r)
}

func takenByAnother(t *testing.T, s server) {
	p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: s.Namespace(t), Names: kubelease.Plain, Clear: true})
	g := acquire(t, p, want("Node:worker-1"))
	release(t, p, g)
	// It keeps what it does not know, our annotations.
	leader(t, p, "node-worker-1", "pod-1", func(l *coordination.Lease) { l.Spec.LeaseDurationSeconds = new(int32(15)) })
	held(t, p, want("Node:worker-1"), "pod-1")
	if renewals, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || renewals[0] != lock.Lost {
		t.Errorf("renewal of a lease that another has: %v, %v", renewals, err)
	}
	if err := p.Release(t.Context(), g); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a lease that another has: %v", err)
	}
}

func forbidden(t *testing.T, s server) {
	namespace := s.Namespace(t)
	admin := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: namespace})
	p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, "a"), Namespace: namespace})
	says := func(verb string, err error) {
		t.Helper()
		if err == nil || errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost) || !strings.Contains(err.Error(), "grant the verb "+verb+" on leases of coordination.k8s.io") {
			t.Errorf("without the verb %s: %v", verb, err)
		}
	}
	acquires := func(key string) error {
		_, err := p.Acquire(t.Context(), want(key))
		return err
	}
	says("create", acquires("1"))
	s.Grant(t, namespace, "a", "create")
	if err := acquires("1"); err != nil {
		t.Fatal(err)
	}
	g := acquire(t, admin, want("2"))
	says("get", acquires("2"))
	s.Grant(t, namespace, "a", "get")
	_, err := p.Renew(t.Context(), []lock.Grant{g})
	says("update", err)
	says("delete", p.Release(t.Context(), g))
	_, err = p.Find(t.Context(), lock.Query{Region: "orders", Limit: 1})
	says("list", err)
}

func missingNamespace(t *testing.T, s server) {
	for _, user := range []string{kubetest.Admin} {
		p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, user), Namespace: "nowhere"})
		_, err := p.Acquire(t.Context(), want("1"))
		if err == nil || errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), "there is no namespace nowhere; create it, or set namespace") {
			t.Errorf("acquire: %v", err)
		}
	}
}

// probe is what the settings have found.
func probe(t *testing.T, edit func(*kubelease.Settings)) (found []string) {
	t.Helper()
	settings := kubelease.Kind.Settings()
	edit(settings.(*kubelease.Settings)) //nolint:forcetypeassert // It is the only kind here.
	for _, f := range settings.For("orders").Probe(t.Context()) {
		found = append(found, map[bool]string{true: "warning: "}[f.Warning]+f.Err.Error())
	}
	return found
}

func probes(t *testing.T, s server) {
	namespace := s.Namespace(t)
	for _, step := range []struct {
		grant []string
		names string
		want  string // what each finding has, separated by |
	}{
		{nil, "hashed", "resources [leases], verbs [get, update, delete, list, create]"},
		{[]string{"create", "get"}, "hashed", "verbs [update, delete, list]"},
		{[]string{"update", "delete"}, "hashed", "warning: the account may not list leases in the namespace " + namespace},
		{[]string{"list"}, "plain", "warning: with names: plain, keys that differ can have one Lease"},
		{nil, "hashed", ""},
	} {
		if step.grant != nil {
			s.Grant(t, namespace, "b", step.grant...)
		}
		found := strings.Join(probe(t, func(o *kubelease.Settings) {
			o.Kubeconfig, o.Namespace, o.Names = s.Kubeconfig(t, "b"), namespace, step.names
		}), "|")
		if step.want == "" && found != "" || !strings.Contains(found, step.want) {
			t.Errorf("with %v the probe finds %q, want %q", step.grant, found, step.want)
		}
	}
	found := probe(t, func(o *kubelease.Settings) { o.Kubeconfig, o.Namespace = s.Kubeconfig(t, kubetest.Admin), "nowhere" })
	if len(found) != 1 || !strings.Contains(found[0], ": there is no namespace nowhere; create it") {
		t.Errorf("without the namespace the probe finds %q", found)
	}
	p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: namespace})
	if names, err := p.Names(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("the probes have left %v, %v", names, err)
	}
}

func swept(t *testing.T, s server) {
	p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: s.Namespace(t)})
	short := func(key string) lock.Request {
		r := want(key)
		r.TTL = time.Second
		return r
	}
	acquire(t, p, short("dead"))
	alive := acquire(t, p, short("alive")) // The clock of its holder is wrong.
	acquire(t, p, want("later"))
	ended := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_, _ = p.Renew(ctx, []lock.Grant{alive})
			time.Sleep(100 * time.Millisecond)
		}
	}()
	removed, err := p.Capabilities().Sweep(t.Context(), "orders", time.Now().Add(20*time.Second))
	stop()
	<-ended
	if names, listed := p.Names(t.Context()); removed != 1 || err != nil || len(names) != 2 || listed != nil {
		t.Errorf("a sweep has removed %d, %v, and left %v, want 1 and 2", removed, err, names)
	}
	limited, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if removed, err := p.Capabilities().Sweep(limited, "orders", time.Now().Add(20*time.Second)); removed != 0 || err == nil || !strings.Contains(err.Error(), "are watched for 1s first") {
		t.Errorf("a sweep without the time for it has removed %d, %v", removed, err)
	}
	if removed, err := p.Capabilities().Sweep(t.Context(), "payments", time.Now().Add(time.Hour)); removed != 0 || err != nil {
		t.Errorf("a sweep of another region has removed %d, %v", removed, err)
	}
}

func gone(t *testing.T, s server) {
	p := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: s.Namespace(t)})
	g := acquire(t, p, want("1"))
	other := open(t, kubelease.Options{Kubeconfig: s.Kubeconfig(t, kubetest.Admin), Namespace: p.Namespace()})
	release(t, other, g)
	if renewals, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || renewals[0] != lock.Lost {
		t.Errorf("renewal of a lease that is gone: %v, %v", renewals, err)
	}
	if err := p.Release(t.Context(), g); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a lease that is gone: %v", err)
	}
	next := acquire(t, other, want("1"))
	if next.Fence <= g.Fence || next.Recovered {
		t.Errorf("the next grant is %+v after fence %d", next, g.Fence)
	}
	late := acquire(t, p, want("2"))
	if _, err := other.Find(t.Context(), lock.Query{Region: "orders", Key: "2", Limit: 1}); err != nil {
		t.Fatal(err)
	}
	release(t, other, late)
	acquire(t, other, want("2"))
	if err := p.Release(t.Context(), late); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a lock that the next one has: %v", err)
	}
	held(t, p, want("2"), "pod-1")
}

var _ lockkind.Settings = (*kubelease.Settings)(nil)
