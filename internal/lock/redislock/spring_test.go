package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// registry is what a registry of Spring writes: one UUID for all of its locks.
const registry = "8f14e45f-ceea-467f-9b1c-2d3e4f5a6b7c"

func TestLockOfSpringIsAForeignOne(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url}), client(t, url)
	order := want("order:4711")
	order.Region = "payment-lock"
	if err := c.Set(t.Context(), "payment-lock:order:4711", registry, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if held := holder(t, p, order); held.Node != "" || held.Left <= 0 || held.Left > time.Minute {
		t.Errorf("holder is described as %+v", held)
	}
	reads := order
	reads.Mode = lock.Intent
	refused(t, p, reads)
	found, err := p.Find(t.Context(), lock.Query{Region: "payment-lock", Limit: 9})
	if err != nil || len(found) != 1 || found[0].Key != "order:4711" || found[0].Term != registry || found[0].Left <= 0 ||
		found[0].Node != "(another kind of client)" || found[0].Descriptor != "lock:exclusive:order:unknown:4711" {
		t.Errorf("found %+v, %v", found, err)
	}
	if got := c.Get(t.Context(), "payment-lock:order:4711").Val(); got != registry {
		t.Errorf("the value is %q by now", got)
	}
	g, err := p.Steal(t.Context(), order, found[0], lock.By{})
	if err != nil || !g.Recovered {
		t.Errorf("steal: %+v, %v", g, err)
	}
	release(t, p, g)
}

// TestKeysOfOthersAreDescribed has keys that no descriptor of ours would have.
func TestKeysOfOthersAreDescribed(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url}), client(t, url)
	for key, descriptor := range map[string]string{
		"nightly":    "lock:exclusive:nightly:unknown:",
		"order:50%":  "lock:exclusive:order:unknown:50%25",
		"a:b%3Ac:d*": "lock:exclusive:a:unknown:b%3Ac:d*",
	} {
		if err := c.Set(t.Context(), "r:"+key, registry, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		found, err := p.Find(t.Context(), lock.Query{Region: "r", Key: key, Limit: 9})
		if err != nil || len(found) != 1 || found[0].Descriptor != descriptor {
			t.Errorf("%s: %+v, %v", key, found, err)
		}
	}
}

// TestKeyThatDoesNotExpire has a holder whose lock has no end: it is not shown as over.
func TestKeyThatDoesNotExpire(t *testing.T) {
	t.Parallel()
	url := database(t)
	p := open(t, redislock.Options{URL: url})
	if err := client(t, url).Set(t.Context(), "r:a", registry, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if held := holder(t, p, want("a")); held.Left != 0 {
		t.Errorf("holder is described as %+v", held)
	}
	found, err := p.Find(t.Context(), lock.Query{Region: "r", Limit: 9})
	if err != nil || len(found) != 1 || found[0].Left != lock.Endless {
		t.Errorf("found %+v, %v", found, err)
	}
}

// TestReleaseIsPublished waits as a registry of Spring does, and as we do.
func TestReleaseIsPublished(t *testing.T) {
	t.Parallel()
	url := database(t)
	p := open(t, redislock.Options{URL: url})
	region := "reg[1]" + url[strings.LastIndex(url, "/"):] // The channels of all databases are the same.
	heard := client(t, url).PSubscribe(t.Context(), strings.NewReplacer("[", `\[`).Replace(region)+"-channel:*")
	defer heard.Close()
	if _, err := heard.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	freed, ended := make(chan string, 100), make(chan error, 1)
	go func() { ended <- p.Capabilities().Notify(ctx, region, func(key string) { freed <- key }) }()

	reads := want("order:4711")
	reads.Region, reads.Mode = region, lock.Shared
	g := acquire(t, p, reads)
	release(t, p, g)
	soon, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	message, err := heard.ReceiveMessage(soon)
	if err != nil || message.Channel != region+"-channel:"+region+":order:4711" || message.Payload != region+":order:4711" {
		cancel()
		t.Fatalf("message %+v, %v", message, err)
	}
	// Notify may have begun after that.
	waittest.Eventually(t, time.Minute, func() error {
		release(t, p, acquire(t, p, reads))
		select {
		case key := <-freed:
			if key != "order:4711" {
				t.Errorf("%q was freed", key)
			}
			return nil
		default:
			return errors.New("nobody tells of a release")
		}
	})
	quiet := open(t, redislock.Options{URL: url, Quiet: true})
	if quiet.Capabilities().Notify != nil {
		t.Error("a provider that does not tell says that it does")
	}
	other := want("other")
	other.Region = region
	release(t, quiet, acquire(t, quiet, other))
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the subscription has ended by %v", err)
	}
	for close(freed); len(freed) > 0; {
		if key := <-freed; key != "order:4711" {
			t.Errorf("%q was freed", key)
		}
	}
}

// TestNotifyEndsWithItsServer has servers that end, hang, and allow no subscription.
func TestNotifyEndsWithItsServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Must(t, "ACL SETUSER mute on >secret ~* +@all resetchannels")
	mute := open(t, redislock.Options{URL: "redis://mute:secret@" + s.Address()})
	if err := mute.Capabilities().Notify(t.Context(), "r", nil); err == nil || !strings.Contains(err.Error(), "&REGION-channel:*") {
		t.Errorf("subscription without the right: %v", err)
	}
	url, proxy := netfault.StartBefore(t, s.URL())
	p := open(t, redislock.Options{URL: url})
	ended := make(chan error, 1)
	start := func() {
		subscribed := make(chan struct{}, 9)
		proxy.Inspect(func(request []byte) netfault.Fault {
			if bytes.Contains(bytes.ToLower(request), []byte("psubscribe")) {
				subscribed <- struct{}{}
			}
			return netfault.Fault{}
		})
		go func() { ended <- p.Capabilities().Notify(t.Context(), "r", func(string) {}) }()
		<-subscribed
	}
	start()
	proxy.SetImpairment(netfault.BlackHole())
	if err := <-ended; err == nil {
		t.Error("a server that does not answer any more is no error")
	}
	proxy.SetImpairment(netfault.Impairment{})
	start()
	s.Kill(t)
	if err := <-ended; err == nil {
		t.Error("a server that is gone is no error")
	}
}

// TestReleaseOfWhoMayNotTell has a user without channels, as new ones are.
func TestReleaseOfWhoMayNotTell(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Must(t, "ACL SETUSER mute on >secret ~* +@all resetchannels")
	var log bytes.Buffer
	p := open(t, redislock.Options{URL: "redis://mute:secret@" + s.Address(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		release(t, p, acquire(t, p, want("a")))
	}
	if n := strings.Count(log.String(), "&REGION-channel:*"); n != 1 || strings.Contains(log.String(), "secret") {
		t.Errorf("it is told %d times, want once:\n%s", n, log.String())
	}
}

// TestUserOfOneRegion has the least rights.
func TestUserOfOneRegion(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Must(t, "ACL SETUSER app on >secret ~r:* ~{r:* &r-channel:* +@read +@write +@scripting +@pubsub +@connection +time +info")
	p := open(t, redislock.Options{URL: "redis://app:secret@" + s.Address()})
	reads := want("b")
	reads.Mode = lock.Shared
	grants, err := p.AcquireAll(t.Context(), []lock.Request{want("a"), reads})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		renewal(t, p, g, lock.Renewed)
	}
	if found, err := p.Find(t.Context(), lock.Query{Region: "r", Limit: 9}); err != nil || len(found) != 2 {
		t.Errorf("found %+v, %v", found, err)
	}
	for _, g := range grants {
		release(t, p, g)
	}
	other := want("a")
	other.Region = "s"
	if _, err := p.Acquire(t.Context(), other); err == nil || errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), "~REGION:*") {
		t.Errorf("a lock of another region: %v", err)
	}
	s.Must(t, "ACL SETUSER reader on >secret allkeys allchannels +@read +@scripting +@connection")
	fails(t, open(t, redislock.Options{URL: "redis://reader:secret@" + s.Address()}), "ACL SETUSER")
}
