package redislock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/redislock"
)

// oldKey is that of the older system for the locks of job.
const oldKey = "consolidation:fs-1:inv:oice"

// job is a lock with such a key.
func job(mode lock.Mode) lock.Request {
	r := want("consolidation-job:fs-1:inv%3Aoice")
	r.Mode, r.Descriptor = mode, "lock:"+string(mode)+":consolidation-job:triggering:fs-1:inv%3Aoice"
	return r
}

func legacies() map[string]string {
	return map[string]string{"consolidation-job/triggering": "consolidation:{1}:{2}", "audit/processing": "status-reconciliation-audit"}
}

func TestLegacyKeyIsKeptWithTheLock(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url, Legacy: legacies()}), client(t, url)
	kept := func(when string, want bool) {
		t.Helper()
		if got := c.Exists(t.Context(), oldKey).Val() == 1; got != want {
			t.Errorf("%s the legacy key is there: %t", when, got)
		}
	}
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		g := acquire(t, p, job(mode))
		kept("after the acquisition", true)
		if err := c.PExpire(t.Context(), oldKey, time.Second).Err(); err != nil {
			t.Fatal(err)
		}
		renewal(t, p, g, lock.Renewed)
		if left := c.PTTL(t.Context(), oldKey).Val(); left <= time.Second || left > g.TTL {
			t.Errorf("after the renewal the legacy key lasts for %s", left)
		}
		if err := p.Extend(t.Context(), g, time.Hour); err != nil {
			t.Fatal(err)
		}
		if left := c.PTTL(t.Context(), oldKey).Val(); left <= time.Minute {
			t.Errorf("after the extension the legacy key lasts for %s", left)
		}
		release(t, p, g)
		kept("after the release", false)
		acquire(t, p, job(mode))
		found, err := p.Find(t.Context(), lock.Query{Region: "r", Limit: 9})
		if err != nil || len(found) != 1 {
			t.Fatalf("found %+v, %v", found, err)
		}
		stolen, err := p.Steal(t.Context(), job(lock.Shared), found[0], lock.By{})
		if err != nil {
			t.Fatal(err)
		}
		kept("after the theft", true)
		if err := p.ReleaseAfter(t.Context(), stolen, time.Hour); err != nil {
			t.Fatal(err)
		}
		kept("after the release for later", true)
		if err := c.FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := p.ReleaseAfter(t.Context(), acquire(t, p, job(mode)), time.Hour); err != nil {
			t.Fatal(err)
		}
		kept("for nobody", true)
		if found, err = p.Find(t.Context(), lock.Query{Region: "r", Limit: 9}); err != nil || len(found) != 1 {
			t.Fatalf("found %+v, %v", found, err)
		}
		release(t, p, found[0].Grant)
		kept("after an operator has released it", false)
	}
	other := want("consolidation-job:fs-1:inv%3Aoice")
	other.Descriptor = "lock:exclusive:consolidation-job:reading:fs-1:inv%3Aoice"
	acquire(t, p, other)
	kept("of another predicate", false)
}

// TestOlderSystemKeepsItsLock has the older system hold a lock, beside nothing of ours, and
// beside those who do not know its key.
func TestOlderSystemKeepsItsLock(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url, Legacy: legacies()}), client(t, url)
	unaware := open(t, redislock.Options{URL: url})
	if err := c.Set(t.Context(), oldKey, "older", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	refuses := func() {
		t.Helper()
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			refused(t, p, job(mode))
		}
		if got := c.Get(t.Context(), oldKey).Val(); got != "older" {
			t.Errorf("the legacy key has %q", got)
		}
	}
	refuses()
	for _, r := range [][]lock.Request{{want("x"), job(lock.Exclusive)}, {job(lock.Exclusive), want("x")}} {
		if g, err := p.AcquireAll(t.Context(), r); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("a set: %v, %v", g, err)
		}
	}
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		g := acquire(t, unaware, job(mode))
		refuses()
		found, err := p.Find(t.Context(), lock.Query{Region: "r", Key: g.Key, Limit: 9})
		if err != nil || len(found) != 2 {
			t.Fatalf("found %+v, %v", found, err)
		}
		at := slices.IndexFunc(found, func(h lock.Held) bool { return h.Term == g.Term })
		if stolen, err := p.Steal(t.Context(), job(mode), found[at], lock.By{}); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("steal: %+v, %v", stolen, err)
		}
		renewal(t, p, g, lock.Renewed)
		release(t, p, g)
		refuses()
	}
}

func TestLegacyKeysAreFound(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url, Legacy: legacies()}), client(t, url)
	for key, value := range map[string]string{"consolidation:fs-2:order": "older", "status-reconciliation-audit": "older", "consolidation:x": "no lock"} {
		if err := c.Set(t.Context(), key, value, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// Two keys are one lock.
	acquire(t, p, job(lock.Exclusive))
	for key, mode := range map[string]lock.Mode{"fs-3:plain": lock.Exclusive, "fs-4:plain": lock.Shared} {
		r := job(mode)
		r.Key, r.Descriptor = "consolidation-job:"+key, "lock:"+string(mode)+":consolidation-job:triggering:"+key
		acquire(t, p, r)
	}
	found, err := p.Find(t.Context(), lock.Query{Region: "r", Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, f := range found {
		texts = append(texts, f.Descriptor+" "+f.Node)
	}
	want := []string{
		"lock:exclusive:consolidation-job:triggering:fs-2:order (another kind of client)",
		"lock:exclusive:consolidation-job:triggering:fs-1:inv%3Aoice a",
		"lock:exclusive:consolidation-job:triggering:fs-3:plain a",
		"lock:shared:consolidation-job:triggering:fs-4:plain a",
		"lock:exclusive:audit:processing:status-reconciliation-audit (another kind of client)",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("found\n%q\nwant\n%q", texts, want)
	}
	if err := c.Set(t.Context(), "consolidation:fs-5:a:b", "older", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"fs-2:order", "fs-5:a%3Ab"} {
		found, err = p.Find(t.Context(), lock.Query{Region: "r", Key: "consolidation-job:" + key, Limit: 9})
		if err != nil || len(found) != 1 || found[0].Descriptor != "lock:exclusive:consolidation-job:triggering:"+key {
			t.Errorf("found by its key: %+v, %v", found, err)
		}
	}
}

// TestReleaseForLaterOfAFormerVersion has the values that one has left, which named no term.
func TestReleaseForLaterOfAFormerVersion(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url, Legacy: legacies()}), client(t, url)
	r := job(lock.Exclusive)
	for key, value := range map[string]string{"r:" + r.Key: `- 7 {"ttl_ms":60000,"node":"b","descriptor":"` + r.Descriptor + `"}`, "consolidation:fs-1:inv:oice": "-"} {
		if err := c.Set(t.Context(), key, value, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if held := holder(t, p, r); held.Node != "b" {
		t.Errorf("held by %+v", held)
	}
	found, err := p.Find(t.Context(), lock.Query{Region: "r", Limit: 9})
	if err != nil || len(found) != 1 || found[0].Node != "b" || found[0].Term != "-" {
		t.Fatalf("found %+v, %v", found, err)
	}
	release(t, p, found[0].Grant)
	acquire(t, p, r)
}

// TestLegacyKeyThatIsDatedAhead has the clock set back under a holder that is dead.
func TestLegacyKeyThatIsDatedAhead(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url, Legacy: legacies()}), client(t, url)
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		g := acquire(t, p, job(mode))
		if mode == lock.Exclusive {
			for _, key := range []string{"r:" + g.Key, oldKey} {
				if err := c.PExpire(t.Context(), key, time.Hour).Err(); err != nil {
					t.Fatal(err)
				}
			}
		} else {
			harness(t, redislock.Options{URL: url}, c).Date(t, g, time.Hour)
		}
		refused(t, p, job(lock.Exclusive))
		if left := c.PTTL(t.Context(), oldKey).Val(); left <= 0 || left > g.TTL {
			t.Errorf("%s: the legacy key lasts for %s", mode, left)
		}
		release(t, p, g)
	}
}

func TestLegacyKeyOfTwoLocks(t *testing.T) {
	t.Parallel()
	p := open(t, redislock.Options{URL: database(t), Legacy: legacies()})
	requests := make([]lock.Request, 2)
	for i, key := range []string{"1", "2"} {
		requests[i] = want("audit:" + key)
		requests[i].Descriptor = "lock:exclusive:audit:processing:" + key
	}
	if g, err := p.AcquireAll(t.Context(), requests); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("a set whose locks have one legacy key: %v, %v", g, err)
	}
	acquire(t, p, requests[0])
	refused(t, p, requests[1])
	few := want("consolidation-job:x")
	few.Descriptor = "lock:exclusive:consolidation-job:triggering:x"
	if _, err := p.Acquire(t.Context(), few); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("a lock with too few resources: %v", err)
	}
}

func TestLegacyKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	for kind, template := range map[string]string{
		"page": "p:{1}", "/x": "p", "page/": "p", "page/writing": "", "page/reading": "p:{0}", "page/a": "p:{1}:{1}", "page/b": "p:{2}",
	} {
		if _, err := redislock.Open(redislock.Options{URL: "redis://host", Legacy: map[string]string{kind: template}}); err == nil {
			t.Errorf("%s: %q is accepted", kind, template)
		}
	}
	if _, err := redislock.Open(redislock.Options{URL: "redis://host", Cluster: true, Legacy: legacies()}); err == nil {
		t.Error("legacy keys are accepted in a cluster")
	}
}
