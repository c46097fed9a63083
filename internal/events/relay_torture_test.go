package events_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/events"
)

// chaos fails calls at random, from one seed.
type chaos struct {
	mu     sync.Mutex
	rnd    *rand.Rand
	over   bool
	faults map[string]int
}

func (c *chaos) strike(fault string, percent int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.rnd.IntN(100) >= percent {
		return false
	}
	c.faults[fault]++
	return true
}

func (c *chaos) upTo(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rnd.IntN(n)
}

func (c *chaos) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// deliver stores a random prefix with an error, or all of it late: longer than
// the lease lives, and without regard to ctx, as a process does that slept.
func (c *chaos) deliver(_ context.Context, batch []events.Event) (int, error) {
	if c.strike("partial delivery", 20) {
		return c.upTo(len(batch) + 1), errBroken
	}
	if c.strike("late delivery", 10) {
		time.Sleep(time.Duration(c.upTo(20_000)) * time.Millisecond)
	}
	return len(batch), nil
}

// TestRelayUnderRandomFaults lets two nodes deliver while databases, sinks and
// leases fail. Each event must reach the sink, for the first time in order,
// and a sink that refuses repeats must hold each exactly once.
func TestRelayUnderRandomFaults(t *testing.T) {
	faults := map[string]int{}
	var mu sync.Mutex
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(40) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				bubble(t, func(r *rig) {
					c := &chaos{rnd: rand.New(rand.NewPCG(seed, 1)), faults: map[string]int{}}
					tortureRelay(r, c, seed%2 == 0)
					mu.Lock()
					defer mu.Unlock()
					for fault, n := range c.faults {
						faults[fault] += n
					}
				})
			})
		}
	})
	for _, fault := range []string{"call fails", "answer is lost", "partial delivery", "late delivery", "lease expires"} {
		if faults[fault] < 40 {
			t.Errorf("%q happened %d times only: nothing was proved", fault, faults[fault])
		}
	}
}

func tortureRelay(r *rig, c *chaos, refuses bool) {
	const streams, perStream = 3, 60
	r.sink.refuses = refuses
	r.sink.behave(c.deliver)
	r.log.fail(fail(c, "call fails", 10), fail(c, "answer is lost", 10))
	other := *r
	other.opts.Registerer = nil
	r.start()
	other.start()
	for next := int64(1); next <= perStream; next += 5 {
		for s := range streams {
			r.log.add(stream(s), next, next+1, next+2, next+3, next+4)
		}
		pass(time.Duration(c.upTo(10_000)) * time.Millisecond)
		if c.strike("lease expires", 30) {
			r.lock.expire(false)
		}
	}
	c.end()
	pass(5 * time.Minute)
	for s := range streams {
		r.wantOffset(stream(s), perStream)
		got := r.sink.seqs(stream(s))
		if !refuses {
			got = firsts(got)
		}
		if !slices.Equal(got, upTo(perStream)) {
			r.t.Errorf("stream %d holds %v", s, got)
		}
	}
	other.stop()
	synctest.Wait()
}

func fail(c *chaos, fault string, percent int) func(string) error {
	return func(string) error {
		if c.strike(fault, percent) {
			return errDown
		}
		return nil
	}
}

func stream(n int) string { return fmt.Sprintf("stream-%d", n) }

// firsts returns the numbers without their repetitions.
func firsts(seqs []int64) (first []int64) {
	seen := map[int64]bool{}
	for _, seq := range seqs {
		if !seen[seq] {
			first = append(first, seq)
		}
		seen[seq] = true
	}
	return first
}
