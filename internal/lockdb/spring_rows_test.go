package lockdb_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/springtest"
)

// TestRowOfSpringIsForeignAlsoAfterOurs covers what remains of us in obs_lock
// when an application takes a lock that we have held.
func TestRowOfSpringIsForeignAlsoAfterOurs(t *testing.T) {
	t.Parallel()
	couples(t, func(c *couple, g springtest.Generation) {
		before := c.oursTakes()
		if err := c.db.Leases().Release(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		if !c.springTries() {
			t.Fatal("Spring did not get a free lock")
		}
		if held := c.oursIsRefused(shareTTL); held.Node != "" || held.Left <= shareTTL/2 || held.Left > shareTTL {
			t.Errorf("the holder is described as %+v", held)
		}
		rows, _, err := c.db.Leases().Locks(t.Context(), nil, 100)
		if err != nil || len(rows) != 1 || rows[0].Holder != "" || rows[0].Fence != 0 || rows[0].Term != c.spring.ID() {
			t.Errorf("the lock is shown as %+v, %v", rows, err)
		}
		c.checkEnded(before)
		if ok, err := c.spring.IsAcquired(t.Context(), c.key); err != nil || !ok {
			t.Errorf("Spring has lost its lock to us: %v, %v", ok, err)
		}
		if ok, err := c.spring.Delete(t.Context(), c.key); err != nil || !ok {
			t.Errorf("Spring gives its lock back: %v, %v", ok, err)
		}
		if after := c.oursTakes(); after.Fence <= before.Fence {
			t.Errorf("fence %d was given after %d", after.Fence, before.Fence)
		}
	})
}

// TestEachTakesWhatOfTheOtherHasExpired also shows that neither takes it
// before, and that the former holder finds out.
func TestEachTakesWhatOfTheOtherHasExpired(t *testing.T) {
	t.Parallel()
	couples(t, func(c *couple, g springtest.Generation) {
		if !c.springTries() {
			t.Fatal("Spring did not get a free lock")
		}
		c.ages(c.spring.ID(), shareTTL-20*time.Second)
		c.oursIsRefused(shareTTL)
		c.ages(c.spring.ID(), 20*time.Second+time.Millisecond)
		ours := c.oursTakes()
		for name, ask := range map[string]func() (bool, error){
			"renew": func() (bool, error) { return c.spring.Renew(t.Context(), c.key) },
			"own":   func() (bool, error) { return c.spring.IsAcquired(t.Context(), c.key) },
			"give":  func() (bool, error) { return c.spring.Delete(t.Context(), c.key) },
		} {
			if ok, err := ask(); ok || err != nil {
				t.Errorf("Spring can %s the lock that we have taken from it: %v, %v", name, ok, err)
			}
		}

		c.ahead = shareTTL - 20*time.Second
		if c.springTries() {
			t.Fatal("Spring has taken our lock before its TTL was over")
		}
		c.ahead = shareTTL + time.Second
		if !c.springTries() {
			t.Fatal("Spring has not taken our lock after its TTL")
		}
		c.checkEnded(ours)
	})
}

// TestSpringRenewsWhatWeCouldHaveTaken pins that its renewal revives an expired
// lock, and that ours then respects it.
func TestSpringRenewsWhatWeCouldHaveTaken(t *testing.T) {
	t.Parallel()
	couples(t, func(c *couple, g springtest.Generation) {
		if !c.springTries() {
			t.Fatal("Spring did not get a free lock")
		}
		c.ages(c.spring.ID(), 2*shareTTL)
		if ok, err := c.spring.Renew(t.Context(), c.key); err != nil || !ok {
			t.Fatalf("renew: %v, %v", ok, err)
		}
		if held := c.oursIsRefused(shareTTL); held.Left <= shareTTL/2 {
			t.Errorf("the renewed lock is described as %+v", held)
		}
	})
}

// TestTTLLivesInTheReaderUpToSpring6 shows what becomes of different TTLs: with
// four columns the shorter one decides for both, with EXPIRED_AFTER each for
// its own.
func TestTTLLivesInTheReaderUpToSpring6(t *testing.T) {
	t.Parallel()
	for _, g := range springtest.Generations() {
		inReader := g != springtest.Spring7
		t.Run(g.String()+" is shorter", func(t *testing.T) {
			t.Parallel()
			c := newCouple(t, springtest.Options{Generation: g, TTL: 10 * time.Second})
			ours := c.oursTakes()
			c.ahead = 15 * time.Second
			if taken := c.springTries(); taken != inReader {
				t.Fatalf("Spring with a TTL of 10 s has taken our lease of %s after 15 s: %v", shareTTL, taken)
			}
			if inReader {
				c.checkEnded(ours)
			}
		})
		t.Run(g.String()+" sweeps", func(t *testing.T) {
			t.Parallel()
			c := newCouple(t, springtest.Options{Generation: g, TTL: 10 * time.Second})
			c.oursTakes()
			c.ahead = 15 * time.Second
			if n, err := c.spring.DeleteExpired(t.Context()); err != nil || (n == 1) != inReader {
				t.Errorf("its deleteExpired has removed %d leases of ours, %v", n, err)
			}
		})
		t.Run(g.String()+" is longer", func(t *testing.T) {
			t.Parallel()
			c := newCouple(t, springtest.Options{Generation: g, TTL: shareTTL})
			if !c.springTries() {
				t.Fatal("Spring did not get a free lock")
			}
			c.ages(c.spring.ID(), 15*time.Second)
			_, err := c.db.Leases().Acquire(t.Context(), c.request(10*time.Second))
			if taken := err == nil; taken != inReader {
				t.Errorf("we with a TTL of 10 s have taken Spring's lock of %s after 15 s: %v", shareTTL, err)
			}
		})
	}
}

// TestLocalTimeOfSpring5 pins why its JVMs must run in UTC: to the east every
// lease of ours has long expired, to the west its own have for us.
func TestLocalTimeOfSpring5(t *testing.T) {
	t.Parallel()
	t.Run("east", func(t *testing.T) {
		t.Parallel()
		c := newCouple(t, springtest.Options{Generation: springtest.Spring5, TTL: shareTTL, Zone: time.FixedZone("CEST", 2*60*60)})
		ours := c.oursTakes()
		if !c.springTries() {
			t.Fatal("Spring to the east has not taken our lease")
		}
		c.checkEnded(ours) // Fencing keeps that harmless for us.
		c.ages(c.spring.ID(), shareTTL)
		c.oursIsRefused(shareTTL)
	})
	t.Run("west", func(t *testing.T) {
		t.Parallel()
		c := newCouple(t, springtest.Options{Generation: springtest.Spring5, TTL: shareTTL, Zone: time.FixedZone("EST", -5*60*60)})
		if !c.springTries() {
			t.Fatal("Spring did not get a free lock")
		}
		c.oursTakes()
	})
}

// TestSpringThatFollowsADeadNodeIsNotJudged lets an application take the lock
// of a node that then dies. Only what the node still held is freed.
func TestSpringThatFollowsADeadNodeIsNotJudged(t *testing.T) {
	t.Parallel()
	couples(t, func(c *couple, g springtest.Generation) {
		first := holdElsewhere(t, c.url, never, c.key)
		second := holdElsewhere(t, c.url, never, "wes-observer-poll")
		expire(t.Context(), t, c.url, first.grant)
		if !c.springTries() {
			t.Fatal("Spring has not taken the expired lock")
		}
		w := watch(t, c.url)
		first.kill()
		second.kill()
		eventually(t, w.tries(t, "wes-observer-poll"))
		// A node that was judged is judged with all that it held.
		eventually(t, func() error {
			if !w.live.Gone(first.boot) {
				return fmt.Errorf("the first node is not known to be dead")
			}
			return nil
		})
		c.oursIsRefused(never)
		if ok, err := c.spring.IsAcquired(t.Context(), c.key); err != nil || !ok {
			t.Errorf("Spring has lost its lock: %v, %v", ok, err)
		}
		if n := w.logged("Lease freed", "order"); n != 0 {
			t.Errorf("a lock of Spring was freed:\n%s", w.log.text.String())
		}
	})
}
