package contend_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/redistest"
)

// step is what a client asks of a lock, or the end of a TTL.
type step struct {
	what string // acquire, renew, release or expire
	mode lock.Mode
	term string
	// renewals is how often the lease was renewed then: a TTL ends the lease of the last one.
	renewals int
}

// outcome is the answer. One that is not known may have happened, at any time since.
type outcome struct {
	known, done bool
	fence       int64
}

type holder struct {
	term     string
	mode     lock.Mode
	renewals int
	// over says that its TTL is over. It keeps nobody out, is not renewed, and may be
	// released until another has come whom it would have kept out.
	over bool
}

// state is that of one lock.
type state struct {
	fence   int64
	holders []holder
}

func (s state) index(term string) int {
	return slices.IndexFunc(s.holders, func(h holder) bool { return h.term == term })
}

func (s state) without(term string) state {
	s.holders = slices.DeleteFunc(slices.Clone(s.holders), func(h holder) bool { return h.term == term })
	return s
}

func (s state) with(h holder) state {
	s = s.without(h.term)
	s.holders = append(s.holders, h)
	slices.SortFunc(s.holders, func(a, b holder) int { return strings.Compare(a.term, b.term) })
	return s
}

// effect is what becomes of a lock by a step, and whether the step is possible.
func (s state) effect(in step) (state, bool) {
	i := s.index(in.term)
	switch in.what {
	case "acquire":
		if slices.ContainsFunc(s.holders, func(h holder) bool { return !h.over && h.mode.Conflicts(in.mode) }) {
			return s, false
		}
		for _, h := range s.holders {
			if h.mode.Conflicts(in.mode) {
				s = s.without(h.term)
			}
		}
		return s.with(holder{term: in.term, mode: in.mode}), true
	case "renew":
		if i < 0 || s.holders[i].over {
			return s, false
		}
		return s.with(holder{term: in.term, mode: s.holders[i].mode, renewals: in.renewals}), true
	case "release":
		return s.without(in.term), i >= 0
	}
	if i < 0 || s.holders[i].renewals != in.renewals {
		return s, true
	}
	ended := s.holders[i]
	ended.over = true
	return s.with(ended), true
}

// after returns the states that a step with this outcome may lead to.
func (s state) after(in step, out outcome) []any {
	next, possible := s.effect(in)
	switch {
	case !out.known && possible:
		return []any{s, next}
	case !out.known:
		return []any{s}
	case in.what == "release" && !out.done && possible && s.holders[s.index(in.term)].over:
		return []any{next} // Somebody has looked, and removed it.
	case out.done != possible:
		return nil
	case !out.done:
		return []any{s}
	case in.what == "acquire":
		if out.fence <= s.fence {
			return nil
		}
		next.fence = out.fence
	}
	return []any{next}
}

// oneLock is a lock with modes, TTLs and fences.
var oneLock = porcupine.NondeterministicModel{
	Init:  func() []any { return []any{state{}} },
	Step:  func(s, in, out any) []any { return s.(state).after(in.(step), out.(outcome)) },
	Equal: reflect.DeepEqual,
}

// history is what clients have done with one lock.
type history struct {
	mu   sync.Mutex
	from time.Time
	ops  []porcupine.Operation
}

func (h *history) add(client int, in step, call time.Time, out outcome, end time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: int64(call.Sub(h.from)), Output: out, Return: int64(end)})
}

// asked notes an answer that has just come, or what has happened since the call if none came.
func (h *history) asked(client int, in step, call time.Time, out outcome) {
	h.add(client, in, call, out, time.Since(h.from))
}

// TTLs of a client that is cut off, and by how much the server's clock, of whole milliseconds,
// may end one earlier or later.
const (
	ttl   = 150 * time.Millisecond
	early = 2 * time.Millisecond
	late  = 10 * time.Millisecond
)

// expires notes the end of a TTL that began between the call and now.
func (h *history) expires(client int, term string, renewals int, call time.Time) {
	h.add(client, step{what: "expire", term: term, renewals: renewals}, call.Add(ttl-early), outcome{known: true, done: true}, time.Since(h.from)+ttl+late)
}

// settle waits until a request without an answer has happened, if it has, and the TTL of what it
// has taken is over: the server has answered others since.
func (c *client) settle() {
	time.Sleep(3 * ttl)
	for range 2 {
		if err := c.direct.Ping(context.WithoutCancel(c.t.Context())).Err(); err != nil {
			c.t.Error(err)
		}
	}
}

// client uses a lock through a provider of its own.
type client struct {
	*history
	lock.Provider
	direct *redis.Client // past the proxy
	number int
	t      *testing.T
}

// answer bounds a call: a TTL may be over before a client knows that it has the lock.
const answer = ttl

var anonymous atomic.Int64

// use acquires the lock once, renews it perhaps, and releases it or lets it expire.
func (c *client) use(mode lock.Mode) {
	ctx, cancel := context.WithTimeout(c.t.Context(), answer)
	defer cancel()
	call := time.Now()
	g, err := c.Acquire(ctx, lock.Request{Region: "r", Key: "a", Node: fmt.Sprint(c.number), TTL: ttl, Mode: mode})
	switch {
	case errors.Is(err, lock.ErrHeld):
		c.asked(c.number, step{what: "acquire", mode: mode, term: "none"}, call, outcome{known: true})
		return
	case err != nil: // It is given back, or expires.
		c.settle()
		term := fmt.Sprintf("?%d", anonymous.Add(1))
		c.asked(c.number, step{what: "acquire", mode: mode, term: term}, call, outcome{})
		c.asked(c.number, step{what: "release", term: term}, call, outcome{})
		return
	}
	c.asked(c.number, step{what: "acquire", mode: mode, term: g.Term}, call, outcome{known: true, done: true, fence: g.Fence})
	c.expires(c.number, g.Term, 0, call)
	for n := 1; n <= rand.IntN(3); n++ {
		time.Sleep(rand.N(ttl * 3 / 4))
		c.renew(g, n)
	}
	if rand.IntN(4) == 0 {
		time.Sleep(rand.N(2 * ttl))
	}
	c.release(g)
}

func (c *client) renew(g lock.Grant, n int) {
	ctx, cancel := context.WithTimeout(c.t.Context(), answer)
	defer cancel()
	call := time.Now()
	renewals, err := c.Renew(ctx, []lock.Grant{g})
	out := outcome{known: err == nil, done: err == nil && renewals[0] == lock.Renewed}
	if !out.known {
		c.settle()
	}
	c.asked(c.number, step{what: "renew", term: g.Term, renewals: n}, call, out)
	c.expires(c.number, g.Term, n, call)
}

func (c *client) release(g lock.Grant) {
	ctx, cancel := context.WithTimeout(c.t.Context(), answer)
	defer cancel()
	call := time.Now()
	err := c.Release(ctx, g)
	lost := errors.Is(err, lock.ErrLost)
	if err != nil && !lost {
		c.settle()
	}
	c.asked(c.number, step{what: "release", term: g.Term}, call, outcome{known: err == nil || lost, done: err == nil})
}

// TestHistories lets clients contend in all modes for a lock whose TTLs run out, and whose
// answers are lost, and asks porcupine whether one lock can have given these answers.
func TestHistories(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			// A history that porcupine cannot decide in time proves nothing: another one is
			// told, twice at most.
			for tries := 1; lossyHistory(t, n).judge(t) == porcupine.Unknown; tries++ {
				if tries == 3 {
					t.Fatal("three histories were not decided in time")
				}
			}
		})
	}
}

// lossyHistory has five clients use one lock of Redis while answers are lost.
func lossyHistory(t *testing.T, n int) *history {
	t.Helper()
	between := netfault.Start(t, strings.TrimPrefix(redistest.URL(t), "redis://"))
	options, err := redis.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	direct := redis.NewClient(options)
	defer direct.Close()
	h := &history{from: time.Now()}
	var work sync.WaitGroup
	for i := range 5 {
		p, err := redislock.Open(redislock.Options{URL: fmt.Sprintf("redis://%s/%d", between.Addr(), 400+n)})
		if err != nil {
			t.Fatal(err)
		}
		c := &client{history: h, Provider: p, direct: direct, number: i, t: t}
		work.Go(func() {
			defer p.Close()
			for range 60 {
				c.use(lock.Modes()[rand.IntN(len(lock.Modes()))])
				time.Sleep(rand.N(5 * time.Millisecond))
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		work.Wait()
	}()
	disturb(between, done)
	return h
}

// disturbances are how often answers are lost in a history: on a slow machine, whose
// clients take long, more of them would leave porcupine too many orders to try.
const disturbances = 10

// disturb loses answers, and waits until the work is done.
func disturb(between *netfault.Proxy, done <-chan struct{}) {
	for range disturbances {
		select {
		case <-done:
			return
		case <-time.After(rand.N(time.Second)):
		}
		between.SetImpairment(netfault.Impairment{Down: netfault.Lost})
		time.Sleep(rand.N(ttl))
		between.SetImpairment(netfault.Impairment{})
		between.Reset()
	}
	<-done
}

// judge fails the test if no lock can have given these answers. It returns porcupine's
// verdict, [porcupine.Unknown] if there was none in time.
func (h *history) judge(t *testing.T) porcupine.CheckResult {
	t.Helper()
	unknown, expired := 0, 0
	for _, op := range h.ops {
		if !op.Output.(outcome).known {
			unknown++
		}
		if op.Input.(step).what == "release" && op.Output.(outcome).known && !op.Output.(outcome).done {
			expired++
		}
	}
	verdict := porcupine.CheckOperationsTimeout(oneLock.ToModel(), h.ops, 2*time.Minute)
	t.Logf("%d steps, %d without an answer, %d leases that had expired: %s", len(h.ops), unknown, expired, verdict)
	if verdict != porcupine.Illegal {
		return verdict
	}
	t.Errorf("one lock cannot have given these answers: %s", verdict)
	_, info := porcupine.CheckOperationsVerbose(oneLock.ToModel(), h.ops, time.Minute)
	longest := 0
	for _, part := range info.PartialLinearizationsOperations() {
		for _, ops := range part {
			longest = max(longest, len(ops))
		}
	}
	for _, part := range info.PartialLinearizationsOperations() {
		for _, ops := range part {
			if len(ops) != longest {
				continue
			}
			last := ops[longest-1]
			for _, op := range h.ops {
				if op.Return > last.Call-int64(ttl) && op.Call < last.Return+int64(ttl) {
					t.Logf("%d %8.3f-%8.3f %+v %+v", op.ClientId, float64(op.Call)/1e6, float64(op.Return)/1e6, op.Input, op.Output)
				}
			}
			return verdict
		}
	}
	return verdict
}
