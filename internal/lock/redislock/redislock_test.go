package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/redistest"
)

// order is the lock that Spring's registry with the key payment-lock has as order:4711.
var order = lock.Request{
	Region: "payment-lock", Key: "order:4711", TTL: time.Minute, Mode: lock.Exclusive, Node: "a", Descriptor: "lock:exclusive:order:processing:4711",
}

func acquire(t *testing.T, p lock.Provider, r lock.Request) lock.Grant {
	t.Helper()
	g, err := p.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func release(t *testing.T, p lock.Provider, g lock.Grant) {
	t.Helper()
	if err := p.Release(t.Context(), g); err != nil {
		t.Errorf("release: %v", err)
	}
}

func refused(t *testing.T, p lock.Provider, r lock.Request) *lock.HeldError {
	t.Helper()
	g, err := p.Acquire(t.Context(), r)
	var held *lock.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("a lock that another has: %+v, %v", g, err)
	}
	return held
}

// What Spring's registry writes is one UUID, and what it looks at is whether the key is there.
func TestSpringAndOursExcludeEachOther(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url}), client(t, url)
	const id = "1f0c5c52-4b3e-4e7c-9d65-0d2f5a5e0c11"
	if err := c.Set(t.Context(), "payment-lock:order:4711", id, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if held := refused(t, p, order); held.Left <= 0 || held.Left > time.Minute || held.Node != "" {
		t.Errorf("the holder is described as %+v", held)
	}
	shared := order
	shared.Mode = lock.Shared
	_ = refused(t, p, shared)
	found, err := p.Find(t.Context(), lock.Query{Region: order.Region, Limit: 10})
	if err != nil || len(found) != 1 || found[0].Term != id || found[0].Descriptor != "lock:exclusive:order:unknown:4711" || !strings.Contains(found[0].Node, "another") {
		t.Errorf("found %+v, %v", found, err)
	}
	c.Del(t.Context(), "payment-lock:order:4711")
	for _, r := range []lock.Request{order, shared} {
		g := acquire(t, p, r)
		if taken, err := c.SetNX(t.Context(), "payment-lock:order:4711", id, time.Minute).Result(); err != nil || taken {
			t.Errorf("Spring takes a lock that is held in mode %s: %t, %v", r.Mode, taken, err)
		}
		if ttl := c.PTTL(t.Context(), "payment-lock:order:4711").Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("in mode %s its key expires in %s", r.Mode, ttl)
		}
		release(t, p, g)
		if n := c.Exists(t.Context(), "payment-lock:order:4711").Val(); n != 0 {
			t.Errorf("in mode %s the key stands after the release", r.Mode)
		}
	}
}

// Those who wait hear of a release: Spring's registry on the channel of the key, ours by Notify.
func TestReleasesAreTold(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url}), client(t, url)
	quiet := open(t, redislock.Options{URL: url, Quiet: true})
	if quiet.Capabilities().Notify != nil {
		t.Error("a provider that sends no messages says that it hears them")
	}
	// Messages are those of all databases of a server, so the region is the test's own.
	r := order
	r.Region = "told"
	spring := c.PSubscribe(t.Context(), "told-channel:*")
	defer spring.Close()
	if _, err := spring.Receive(t.Context()); err != nil { // That it is subscribed.
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard, ended := make(chan string, 10), make(chan error, 1)
	go func() { ended <- p.Capabilities().Notify(ctx, "told", func(key string) { heard <- key }) }()
	for subscribed := false; !subscribed; {
		c.Publish(ctx, "told-channel:told:first", "told:first")
		select {
		case <-heard:
			subscribed = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	release(t, quiet, acquire(t, quiet, r))
	lost := acquire(t, p, r)
	c.Del(t.Context(), "told:order:4711")
	if err := p.Release(t.Context(), lost); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of what is gone: %v", err)
	}
	release(t, p, acquire(t, p, r))
	message, err := spring.ReceiveMessage(t.Context())
	for err == nil && message.Payload == "told:first" {
		message, err = spring.ReceiveMessage(t.Context())
	}
	if err != nil || message.Channel != "told-channel:told:order:4711" || message.Payload != "told:order:4711" {
		t.Errorf("Spring gets %+v, %v", message, err)
	}
	key := <-heard
	for key == "first" {
		key = <-heard
	}
	if key != "order:4711" {
		t.Errorf("heard of %s", key)
	}
	if len(heard) > 0 {
		t.Errorf("heard of %s, too", <-heard)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a subscription ends without an error")
	}
}

// A server forgets its scripts when it starts anew, and when it is told to.
func TestScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := open(t, redislock.Options{URL: s.URL()})
	for range 2 {
		g := acquire(t, p, order)
		s.Must(t, "SCRIPT FLUSH")
		renewals, err := p.Renew(t.Context(), []lock.Grant{g, g})
		if err != nil || !slices.Equal(renewals, []lock.Renewal{lock.Renewed, lock.Renewed}) {
			t.Errorf("renewals %v, %v", renewals, err)
		}
		s.Must(t, "SCRIPT FLUSH")
		release(t, p, g)
		s.Must(t, "SCRIPT FLUSH")
	}
}

// What is not answered is no refusal. What was lost with the data is lost, and fences grow.
func TestServerThatFails(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := open(t, redislock.Options{URL: s.URL()})
	g := acquire(t, p, order)
	s.Kill(t)
	fails := func(what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := p.Acquire(ctx, order); err == nil || errors.Is(err, lock.ErrHeld) {
			t.Errorf("%s, an acquisition: %v", what, err)
		}
		if renewals, err := p.Renew(ctx, []lock.Grant{g}); err == nil || slices.Contains(renewals, lock.Lost) {
			t.Errorf("%s, a renewal: %v, %v", what, renewals, err)
		}
		if err := p.Release(ctx, g); err == nil || errors.Is(err, lock.ErrLost) {
			t.Errorf("%s, a release: %v", what, err)
		}
	}
	fails("killed")
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if renewals, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || renewals[0] != lock.Lost {
		t.Errorf("renewal after the loss of all data: %v, %v", renewals, err)
	}
	next := acquire(t, p, order)
	if next.Fence <= g.Fence || next.Recovered {
		t.Errorf("fence %d after %d; recovered: %t", next.Fence, g.Fence, next.Recovered)
	}
	s.Must(t, "FLUSHALL")
	g = acquire(t, p, order)
	if g.Fence <= next.Fence {
		t.Errorf("fence %d after %d", g.Fence, next.Fence)
	}
	resume := s.Pause(t)
	fails("stopped")
	resume()
}

// An acquisition that was not answered is given back.
func TestUnansweredAcquisitionIsGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := open(t, redislock.Options{URL: s.URL()})
	release(t, p, acquire(t, p, order)) // The script is there.
	resume := s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := p.Acquire(ctx, order)
		done <- err
	}()
	<-ctx.Done()
	time.Sleep(300 * time.Millisecond) // It has given up, and tries to give back.
	resume()
	if err := <-done; err == nil || errors.Is(err, lock.ErrHeld) {
		t.Fatalf("an acquisition without an answer: %v", err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		if g, err := p.Acquire(t.Context(), order); err == nil {
			release(t, p, g)
			return
		} else if !errors.Is(err, lock.ErrHeld) || time.Now().After(end) {
			t.Fatalf("the lock is not free again: %v", err)
		}
	}
}

// A master that is lost before its replica has heard of a lease takes it along. The fence
// tells the two holders apart.
func TestPromotedReplicaKnowsNoLease(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	link := netfault.Start(t, master.Address())
	replica := redistest.Replica(t, link.Addr())
	p := open(t, redislock.Options{URL: master.URL()})
	link.SetImpairment(netfault.BlackHole())
	g := acquire(t, p, order)
	master.Kill(t)
	replica.Must(t, "REPLICAOF NO ONE")
	second := acquire(t, open(t, redislock.Options{URL: replica.URL()}), order)
	if second.Fence <= g.Fence {
		t.Errorf("fence %d after %d", second.Fence, g.Fence)
	}
}

// Errors say what to do, and never the password.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-is-secret"
	locked := redistest.Start(t, "--requirepass", secret)
	master := redistest.Start(t)
	address := strings.TrimPrefix(locked.URL(), "redis://")
	master.Must(t, "ACL SETUSER reader on >"+secret+" ~* +@read +@connection")
	for name, tc := range map[string]struct {
		o    redislock.Options
		want string
	}{
		"no password":    {redislock.Options{URL: locked.URL()}, "password-file"},
		"wrong password": {redislock.Options{URL: "redis://:not-" + secret + "@" + address}, "password-file"},
		"replica":        {redislock.Options{URL: redistest.Replica(t, master.Address()).URL()}, "name the master"},
		"no rights":      {redislock.Options{URL: "redis://reader@" + strings.TrimPrefix(master.URL(), "redis://"), Password: secret}, "docs/locks/redis.md"},
		"cluster":        {redislock.Options{URL: redistest.Cluster(t, 2)[1].URL()}, "cluster: true"},
	} {
		_, err := open(t, tc.o).Acquire(t.Context(), order)
		if err == nil || errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]redislock.Options{
		"no URL":                  {URL: "payments:" + secret + "@localhost"},
		"nodes of nothing":        {URL: "redis://a:1", Nodes: []string{"b:1"}},
		"sentinels of a cluster":  {URL: "redis://a:1", Cluster: true, Master: "m"},
		"legacy without a verb":   {URL: "redis://a:1", Legacy: map[string]string{"schema": "x:{1}"}},
		"legacy that skips":       {URL: "redis://a:1", Legacy: map[string]string{"schema/writing": "x:{2}"}},
		"legacy that repeats":     {URL: "redis://a:1", Legacy: map[string]string{"schema/writing": "x:{1}:{1}"}},
		"legacy keys of clusters": {URL: "redis://a:1", Cluster: true, Legacy: map[string]string{"schema/writing": "x:{1}"}},
	} {
		if _, err := redislock.Open(o); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Beside locks of ours stand keys of an older system, until all have moved.
func TestLegacyKeys(t *testing.T) {
	t.Parallel()
	url := database(t)
	c := client(t, url)
	p := open(t, redislock.Options{URL: url, Legacy: map[string]string{
		"consolidation-job/triggering": "consolidation:{1}:{2}", "audit/processing": "status-reconciliation-audit",
	}})
	job := lock.Request{
		Region: "LOCKS", Key: "consolidation-job:fs-1:invoice", TTL: time.Minute, Mode: lock.Exclusive, Node: "a",
		Descriptor: "lock:exclusive:consolidation-job:triggering:fs-1:invoice",
	}
	const old = "consolidation:fs-1:invoice"
	exists := func(want int64, when string) {
		t.Helper()
		if n := c.Exists(t.Context(), old).Val(); n != want {
			t.Errorf("%s the older key is there %d times", when, n)
		}
	}
	g := acquire(t, p, job)
	exists(1, "after the acquisition")
	c.PExpire(t.Context(), old, time.Second)
	if _, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || c.PTTL(t.Context(), old).Val() < 30*time.Second {
		t.Errorf("the older key is not renewed: %v", err)
	}
	release(t, p, g)
	exists(0, "after the release")
	reads := job
	reads.Mode = lock.Shared
	first, second := acquire(t, p, reads), acquire(t, p, reads)
	release(t, p, first)
	exists(1, "while one reads")
	release(t, p, second)
	exists(0, "after the last reader")

	c.Set(t.Context(), old, "worker-7", time.Minute)
	if held := refused(t, p, job); held.Left <= 0 {
		t.Errorf("the older holder is described as %+v", held)
	}
	_ = refused(t, p, reads)
	c.Set(t.Context(), "status-reconciliation-audit", "1", 0)
	found, err := p.Find(t.Context(), lock.Query{Region: "LOCKS", Limit: 10})
	var texts []string
	for _, h := range found {
		texts = append(texts, h.Descriptor)
	}
	if want := []string{job.Descriptor, "lock:exclusive:audit:processing:status-reconciliation-audit"}; err != nil || !slices.Equal(texts, want) {
		t.Errorf("found %q, %v, want %q", texts, err, want)
	}
	byKey, err := p.Find(t.Context(), lock.Query{Region: "LOCKS", Key: job.Key, Limit: 10})
	if err != nil || len(byKey) != 1 || byKey[0].Term != "worker-7" || byKey[0].Key != job.Key || byKey[0].Descriptor != job.Descriptor {
		t.Fatalf("found by the key %+v, %v", byKey, err)
	}
	release(t, p, byKey[0].Grant) // As an operator does.
	exists(0, "after the release of an older holder")
	short := job
	short.Key, short.Descriptor = "consolidation-job:fs-1", "lock:exclusive:consolidation-job:triggering:fs-1"
	if _, err := p.Acquire(t.Context(), short); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("a lock whose older key needs more resources: %v", err)
	}
}

// In a cluster the keys of a lock are of one slot, and so must be those of a set.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	p := open(t, redislock.Options{URL: nodes[0].URL(), Nodes: []string{nodes[1].Address(), nodes[2].Address()}, Cluster: true})
	of := func(key string, mode lock.Mode) lock.Request {
		r := order
		r.Key, r.Mode = key, mode
		return r
	}
	for _, key := range []string{"order:1", "order:2", "order:3", "order:4", "a{b", "page:{fs-1}:3", "{fs-1}"} {
		release(t, p, acquire(t, p, of(key, lock.Exclusive)))
		g := acquire(t, p, of(key, lock.Shared))
		_ = refused(t, p, of(key, lock.Exclusive))
		if renewals, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || renewals[0] != lock.Renewed {
			t.Errorf("%s: renewal %v, %v", key, renewals, err)
		}
		release(t, p, g)
	}
	for _, key := range []string{"a}b", "{}x", "x{}y"} {
		if _, err := p.Acquire(t.Context(), of(key, lock.Exclusive)); !errors.Is(err, lock.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", key, err)
		}
	}
	if _, err := p.AcquireAll(t.Context(), []lock.Request{of("order:1", lock.Exclusive), of("order:2", lock.Exclusive)}); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("a set of two slots: %v, want ErrUnsupported", err)
	}
	all, err := p.AcquireAll(t.Context(), []lock.Request{of("fileset:{fs-1}", lock.Intent), of("page:{fs-1}:3", lock.Exclusive)})
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, p, of("order:5", lock.Exclusive))
	found, err := p.Find(t.Context(), lock.Query{Region: order.Region, Limit: 10})
	if err != nil || len(found) != 3 {
		t.Errorf("found %d, %v, want 3", len(found), err)
	}
	for _, g := range all {
		release(t, p, g)
	}
}

// Names with braces are names where there is no cluster.
func TestBraces(t *testing.T) {
	t.Parallel()
	p := open(t, redislock.Options{URL: database(t)})
	for _, key := range []string{"a}b", "{}x", "x{}y", "{a}", "{a}b", "a{b", "*", "[a]", `\`} {
		r := order
		r.Key, r.Mode = key, lock.Shared
		g := acquire(t, p, r)
		r.Mode = lock.Exclusive
		_ = refused(t, p, r)
		release(t, p, g)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	url, reg := database(t), prometheus.NewRegistry()
	p := open(t, redislock.Options{URL: url, Registerer: reg})
	open(t, redislock.Options{URL: url, Registerer: reg}) // A second one shares the count.
	g := acquire(t, p, order)
	release(t, p, g)
	if err := client(t, url).Do(t.Context(), "HSET", "payment-lock:order:4711", "a", "b").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Acquire(t.Context(), order); err == nil {
		t.Error("what is no lock was acquired")
	}
	n, err := testutil.GatherAndCount(reg, "observerd_locks_provider_requests_total")
	if err != nil || n < 2 {
		t.Errorf("%d ends are counted, %v", n, err)
	}
}

// An acquisition and its release are a script each.
func TestTwoCallsALock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := open(t, redislock.Options{URL: s.URL()})
	release(t, p, acquire(t, p, order)) // Connected, and the scripts are there.
	c := client(t, s.URL())
	c.ConfigResetStat(t.Context())
	for range 10 {
		release(t, p, acquire(t, p, order))
	}
	stats, err := c.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := stats["Commandstats"]["cmdstat_evalsha"]
	if !strings.HasPrefix(calls, "calls=20,") {
		t.Errorf("ten locks took the scripts %s, want 20", calls)
	}
}

// The rights that the documentation names are enough for all that the contract asks for.
func TestContractWithTheDocumentedRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--databases", "512")
	const region = "DEFAULT" // that of the contract
	s.Must(t, "ACL SETUSER locks on >secret "+strings.ReplaceAll(redislock.ACLRule, "REGION", region)+" +select ~OTHER:* ~{OTHER:* &OTHER-channel:*")
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		url := fmt.Sprintf("redis://locks@%s/%d", s.Address(), databases.Add(1)%512)
		o := redislock.Options{URL: url, Password: "secret"}
		h := harness(t, o, client(t, strings.Replace(url, "locks@", "", 1)))
		return h
	})
}

func TestDocumentedRights(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/locks/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	if rule := "ACL SETUSER locks on >PASSWORD " + redislock.ACLRule + "\n"; !strings.Contains(string(text), rule) {
		t.Errorf("docs/locks/redis.md lacks the line\n%s", rule)
	}
}
