package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// Harness connects the suite to a provider. Each test has its own; its locks must not
// be those of another test.
type Harness struct {
	// Provider returns a client of its own of the same locks, as another
	// process would have. Required.
	Provider func() lock.Provider
	// MinTTL is the shortest TTL that the provider keeps reliably; some tests wait for
	// twice as long. Required.
	MinTTL time.Duration
	// Unanswered says that answers of the store are lost: a release counts as the loss of the
	// lease where another has the lock before it is known.
	Unanswered bool
	// Expire makes a lease expire at once. Nil lets the suite wait for its TTL.
	// It may be called from any goroutine, so it reports with t.Error.
	Expire func(t *testing.T, g lock.Grant)
	// Date makes a lease one that was granted or renewed that far ahead of the
	// provider's clock, as it is after that clock was set back. Nil leaves out
	// what would need it: a provider without a clock has no use for it.
	Date func(t *testing.T, g lock.Grant, ahead time.Duration)
	// Vanishes says that of a lease which is over nothing is left to be found.
	Vanishes bool
	// Failures returns all failures that are known. Required of a provider with a
	// [lock.FailureLog], which keeps them for people.
	Failures func(t *testing.T) []lock.Failure
	// Guarded runs the statement in a transaction of its own, and returns how many rows it
	// has changed. Required of a provider with a [lock.Guard].
	Guarded func(t *testing.T, statement string, args []any) int64
}

// Run tests a provider against the contract: what it says that it has it must keep, and the
// stories of what it lacks are skipped.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	t.Helper()
	for _, story := range []struct {
		name  string
		test  func(t *testing.T, h Harness)
		needs []string
	}{
		{"what a provider has goes together", goesTogether, nil},
		{"a free lock is granted", granted, nil},
		{"a held lock is refused and names its holder", refused, nil},
		{"a lock is not re-entrant", notReentrant, nil},
		{"a released lock is free", released, nil},
		{"release is by term", releaseByTerm, nil},
		{"renewal is by term and in order", renewed, nil},
		{"an expired lease is not revived", notRevived, nil},
		{"a renewed lease outlives its first TTL", outlives, nil},
		{"a lease ends with its TTL and not before", expires, nil},
		{"a holder that is dated in the future keeps its lock", aheadButAlive, nil},
		{"a dead holder that is dated in the future has its lock for a TTL", aheadAndDead, nil},
		{"the holder's TTL decides, not the contender's", holdersTTL, nil},
		{"an extended lease lives by its new TTL", extended, []string{"change of a TTL"}},
		{"a lock that is freed later is held by nobody until then", freedLater, []string{"hold at least"}},
		{"a lock that is freed later can be freed sooner", freedSooner, []string{"hold at least", "list of locks"}},
		{"a lock that another has taken is not freed later", freedLaterIfHeld, []string{"hold at least"}},
		{"a lock that is shared is freed later by one of its holders", sharesLater, []string{"hold at least", "shared and intent modes"}},
		{"a mode that is not there is refused", otherMode, nil},
		{"a long key is a key", longKey, nil},
		{"modes keep each other out by the matrix", matrix, []string{"shared and intent modes"}},
		{"a shared lock is held until the last of its holders is gone", sharedByMany, []string{"shared and intent modes"}},
		{"those who share a lock expire one by one", membersExpire, []string{"shared and intent modes"}},
		{"those who share a lock live by their own TTLs", eachByItsTTL, []string{"shared and intent modes"}},
		{"a set of locks is taken as a whole or not at all", allOrNothing, []string{"several locks at once"}},
		{"what clients do in all modes is the history of one lock", linearizable, []string{"shared and intent modes"}},
		{"sets in any order do not block each other", opposite, []string{"several locks at once"}},
		{"no lock is granted past those who wait", inOrder, []string{"line of those who wait"}},
		{"a greater priority is ahead", byPriority, []string{"line of those who wait"}},
		{"a writer that waits is not passed by readers", writerWaits, []string{"line of those who wait", "shared and intent modes"}},
		{"a caller that does not wait any more loses its place", losesItsPlace, []string{"line of those who wait"}},
		{"a set stands in the lines of all its locks", setInAllLines, []string{"line of those who wait", "several locks at once"}},
		{"a holder passes those who wait for each other and for its lock", holderPasses, []string{"line of those who wait", "several locks at once"}},
		{"a holder does not pass those whom it does not keep out", sharerWaits, []string{"line of those who wait", "shared and intent modes"}},
		{"a set is served among callers that come again and again", setIsServed, []string{"line of those who wait", "several locks at once"}},
		{"locks are found by what describes them", foundBy, []string{"list of locks"}},
		{"a lock is stolen from a holder that lives", stolen, []string{"steal"}},
		{"a lock is stolen whose lease is over", stolenWhenExpired, []string{"steal"}},
		{"a lock that was renewed since it was seen is not stolen", notStolenIfRenewed, []string{"steal"}},
		{"a lock that was released since it was seen is not stolen", notStolenIfEnded, []string{"steal"}},
		{"a lock that is shared is stolen from one of its holders", stolenFromOne, []string{"steal", "shared and intent modes"}},
		{"a lock is stolen past those who wait", stolenFromTheLine, []string{"steal", "line of those who wait"}},
		{"a lock is stolen once", stolenOnce, []string{"steal"}},
		{"failures add up by region, key and predicate", failuresAddUp, []string{"count of failures"}},
		{"failures that processes note together add up", failuresOfMany, []string{"count of failures"}},
		{"a transaction is guarded by the lease", guarded, []string{"guard of a transaction"}},
		{"as many attempts are made at a time as the provider says", atATime, nil},
		{"fences only grow", fencesGrow, nil},
		{"regions and keys are independent", independent, nil},
		{"a call ends with its context", endsWithContext, nil},
		{"contenders never overlap", contenders, nil},
	} {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			h := harness(t)
			h.need(t, story.needs...)
			story.test(t, h)
		})
	}
}

// request describes a lock like those of real use.
func (h Harness) request(node string) lock.Request {
	return lock.Request{
		Key: "order-observer-poll", Region: "DEFAULT", TTL: h.ttl(),
		Name: "order-observer-poll", Node: node, Descriptor: "lock:exclusive:it's an \"order\":poll",
	}
}

// ttl is long enough that no lease of a test ends by itself on a busy machine.
func (h Harness) ttl() time.Duration { return max(30*time.Second, h.MinTTL) }

// expire ends the lease by the provider's own means, or by waiting.
func (h Harness) expire(t *testing.T, g lock.Grant) {
	t.Helper()
	if h.Expire != nil {
		h.Expire(t, g)
		return
	}
	pause(t, time.Until(g.Began.Add(g.TTL+g.TTL/10)))
}

// expiring returns the request of a lease that the test lets expire.
func (h Harness) expiring(node string) lock.Request {
	r := h.request(node)
	if h.Expire == nil {
		r.TTL = h.MinTTL
	}
	return r
}

func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	}
}

func acquire(t *testing.T, p lock.Provider, r lock.Request) lock.Grant {
	t.Helper()
	g, err := p.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("%s could not acquire: %v", r.Node, err)
	}
	return g
}

func refuse(t *testing.T, p lock.Provider, r lock.Request) error {
	t.Helper()
	g, err := p.Acquire(t.Context(), r)
	if !errors.Is(err, lock.ErrHeld) {
		t.Fatalf("%s acquired a held lock: grant %+v, error %v", r.Node, g, err)
	}
	return err
}

func release(t *testing.T, p lock.Provider, g lock.Grant) {
	t.Helper()
	if err := p.Release(t.Context(), g); err != nil {
		t.Fatalf("%s could not release: %v", g.Node, err)
	}
}

// renew asks again while the provider does not know.
func renew(t *testing.T, p lock.Provider, grants ...lock.Grant) []lock.Renewal {
	t.Helper()
	for range 50 {
		renewals, err := p.Renew(t.Context(), grants)
		if err != nil {
			t.Fatalf("renew: %v", err)
		}
		if len(renewals) != len(grants) {
			t.Fatalf("%d answers for %d leases", len(renewals), len(grants))
		}
		if !contains(renewals, lock.Unknown) {
			return renewals
		}
		pause(t, 20*time.Millisecond)
	}
	t.Fatal("renewal stays unknown though no other client is there")
	return nil
}

func contains(all []lock.Renewal, one lock.Renewal) bool {
	for _, r := range all {
		if r == one {
			return true
		}
	}
	return false
}
