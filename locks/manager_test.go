package locks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

// open returns a manager of locks in memory, which is closed at the end of the test.
func open(t *testing.T, o locks.Options) (*locks.Manager, *locktest.Memory) {
	t.Helper()
	p := &locktest.Memory{}
	o.Provider = p
	m, err := locks.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return m, p
}

// exclusive is a provider that has exclusive locks alone, one at a time.
type exclusive struct{ lock.Provider }

func (exclusive) Capabilities() locks.Capabilities { return locks.Capabilities{Name: "exclusive"} }

func (exclusive) Acquire(_ context.Context, r lock.Request) (lock.Grant, error) {
	return lock.Grant{}, fmt.Errorf("mode %s: %w", r.Mode, lock.ErrUnsupported)
}

var (
	audit   = locks.Descriptor{Subject: "audit", Predicate: "processing", Resources: []string{"status"}}
	fileset = locks.Descriptor{Subject: "fileset", Predicate: "processing", Resources: []string{"fs-1"}}
)

var page = locks.Descriptor{Subject: "page", Predicate: "extracting", Resources: []string{"fs-1", "doc-2", "3"}, TTL: 2 * time.Minute}

func acquire(t *testing.T, m *locks.Manager, ctx context.Context, d locks.Descriptor) *locks.Lease { //nolint:revive // The context is the subject of the tests.
	t.Helper()
	l, err := m.Acquire(ctx, d, locks.FailFast())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *locks.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func isHeld(t *testing.T, m *locks.Manager, d locks.Descriptor) bool {
	t.Helper()
	l, err := m.Acquire(t.Context(), d, locks.FailFast())
	if err == nil {
		release(t, l)
	} else if !errors.Is(err, locks.ErrHeld) {
		t.Fatal(err)
	}
	return err != nil
}

func TestLeaseSaysWhatIsHeld(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{Node: "a"})
	l := acquire(t, m, t.Context(), page)
	if d := l.Descriptor(); d.String() != page.String() || l.TTL() != page.TTL || l.Term() == "" || l.Fence() <= 0 {
		t.Errorf("lease of %v for %s, term %q, fence %d", d, l.TTL(), l.Term(), l.Fence())
	}
	_, err := m.Acquire(t.Context(), page, locks.FailFast())
	var held *locks.HeldError
	if !errors.As(err, &held) || held.Node != "a" || held.Lock.String() != page.String() || held.Left <= 0 || held.Tries != 1 {
		t.Errorf("refusal %v: %+v", err, held)
	}
	first := l.Fence()
	release(t, l)
	again := acquire(t, m, t.Context(), page)
	if again.Fence() <= first {
		t.Errorf("fence %d after %d", again.Fence(), first)
	}
	release(t, again)
}

func TestRefusalSaysWhoAndForHowLong(t *testing.T) {
	t.Parallel()
	for want, held := range map[string]locks.HeldError{
		" is held by another":                                              {},
		" is held by vm; tried 2 times":                                    {Node: "vm", Left: time.Microsecond, Tries: 2},
		" is held by vm, for 300ms more unless it is renewed":              {Node: "vm", Left: 300*time.Millisecond + time.Microsecond, Tries: 1},
		" is held by vm, for 59s more unless it is renewed; tried 6 times": {Node: "vm", Left: 59*time.Second - 7*time.Millisecond, Tries: 6},
		" is held by vm, for 2h3m0s more unless it is renewed":             {Node: "vm", Left: 2*time.Hour + 3*time.Minute + 9*time.Second},
		" is for vm, which has waited for longer or has a higher priority": {Node: "vm", Waits: true, Left: time.Minute},
	} {
		held.Lock = page
		if got := held.Error(); got != page.String()+want {
			t.Errorf("%s, want …%s", got, want)
		}
	}
}

// A reader and a writer of the same resources meet, whatever they call their work.
func TestPredicateIsNoPartOfTheKey(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	l := acquire(t, m, t.Context(), page)
	other := page
	other.Predicate = "validating"
	if !isHeld(t, m, other) {
		t.Error("another predicate got the same page")
	}
	other.Resources = []string{"fs-1", "doc-2", "4"}
	if isHeld(t, m, other) {
		t.Error("another page is held too")
	}
	release(t, l)
}

func TestModesThatTheProviderLacks(t *testing.T) {
	t.Parallel()
	m, err := locks.Open(t.Context(), locks.Options{Provider: &exclusive{}})
	if err != nil {
		t.Fatal(err)
	}
	unsupported := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, locks.ErrUnsupported) || errors.Is(err, locks.ErrHeld) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, mode := range []locks.Mode{locks.Shared, locks.Intent, locks.IntentExclusive} {
		d := page
		d.Mode = mode
		_, err := m.Acquire(t.Context(), d)
		unsupported(string(mode), err)
	}
	_, err = m.AcquireAll(t.Context(), []locks.Descriptor{page, audit})
	unsupported("a set", err)
	_, err = m.Acquire(t.Context(), page, locks.WithIntents())
	unsupported("with intents", err)
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		option      []locks.Option
		least, most time.Duration
		tries       int
	}{
		"by default": {nil, 28 * time.Second, 35 * time.Second, 6},
		"backoff":    {[]locks.Option{locks.Retry(locks.Backoff(100*time.Millisecond, 3))}, 630 * time.Millisecond, 770 * time.Millisecond, 4},
		"fixed":      {[]locks.Option{locks.Retry(locks.Fixed(time.Second, 3))}, 3 * time.Second, 3 * time.Second, 4},
		"fail fast":  {[]locks.Option{locks.FailFast()}, 0, 0, 1},
		"no time":    {[]locks.Option{locks.Within(0)}, 0, 0, 1},
		"the last":   {[]locks.Option{locks.Within(time.Hour), locks.FailFast()}, 0, 0, 1},
		"within":     {[]locks.Option{locks.Within(10 * time.Second)}, 10 * time.Second, 10 * time.Second, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, p := open(t, locks.Options{})
				l := acquire(t, m, t.Context(), page)
				began := time.Now()
				_, err := m.Acquire(t.Context(), page, tc.option...)
				took := time.Since(began)
				var held *locks.HeldError
				if !errors.As(err, &held) {
					t.Fatal(err)
				}
				if took < tc.least || took > tc.most || tc.tries > 0 && held.Tries != tc.tries || held.Tries != p.Attempts(page.Key())-1 {
					t.Errorf("%d attempts of %d in %s, want %d in %s to %s", held.Tries, p.Attempts(page.Key())-1, took, tc.tries, tc.least, tc.most)
				}
				release(t, l)
			})
		})
	}
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		l := acquire(t, m, t.Context(), page)
		stopping := errors.New("stopping")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { cancel(stopping) })
		if _, err := m.Acquire(ctx, page, locks.Within(time.Hour)); !errors.Is(err, stopping) || errors.Is(err, locks.ErrHeld) {
			t.Errorf("%v, want the cause of the end", err)
		}
		time.AfterFunc(5*time.Second, func() { release(t, l) })
		began := time.Now()
		next, err := m.Acquire(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("waited %s for a lock that was free after 5 s", took)
		}
		release(t, next)

		down := errors.New("database is down")
		p.Fail(down)
		if _, err := m.Acquire(t.Context(), page); !errors.Is(err, down) || errors.Is(err, locks.ErrHeld) {
			t.Errorf("%v, want the error of the database", err)
		}
		p.Fail(nil)
	})
}

func TestDo(t *testing.T) {
	t.Parallel()
	m, p := open(t, locks.Options{})
	failed := errors.New("failed")
	if err := m.Do(t.Context(), page, func(ctx context.Context, l *locks.Lease) error {
		if !isHeld(t, m, page) || ctx.Err() != nil || l.Fence() <= 0 {
			t.Error("the function runs without its lock")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := m.Do(t.Context(), page, func(context.Context, *locks.Lease) error { return failed }); !errors.Is(err, failed) || errors.Is(err, locks.ErrLost) {
		t.Errorf("%v, want the function's error", err)
	}
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, failed) {
				t.Error("the panic was swallowed")
			}
		}()
		_ = m.Do(t.Context(), page, func(context.Context, *locks.Lease) error { panic(failed) })
	}()
	if isHeld(t, m, page) {
		t.Error("the lock was not released")
	}
	err := m.Do(t.Context(), page, func(ctx context.Context, l *locks.Lease) error {
		g, _ := p.Holder(requestOf(l))
		p.Expire(g)
		_, err := p.Acquire(ctx, g.Request) // Another has the lock from now on.
		return err
	})
	if !errors.Is(err, locks.ErrLost) {
		t.Errorf("%v after the lease had ended", err)
	}
}

func TestLossEndsTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		l := acquire(t, m, t.Context(), page)
		nested := acquire(t, m, l.Context(), page)
		r, _ := p.Holder(requestOf(l))
		p.Expire(r)
		<-nested.Context().Done()
		for _, lease := range []*locks.Lease{l, nested} {
			if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrLost) {
				t.Errorf("context ended because of %v", cause)
			}
			if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
				t.Errorf("release: %v", err)
			}
		}
	})
}

func TestNestedCallsShareTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		outer := acquire(t, m, t.Context(), page)
		between := acquire(t, m, outer.Context(), locks.Descriptor{Subject: "audit", Predicate: "processing", Resources: []string{"x"}})
		ctx, cancel := context.WithTimeout(between.Context(), time.Minute)
		defer cancel()
		inner := acquire(t, m, ctx, page)
		if inner.Term() != outer.Term() || p.Attempts(page.Key()) != 1 {
			t.Errorf("terms %s and %s, %d attempts", inner.Term(), outer.Term(), p.Attempts(page.Key()))
		}
		release(t, outer)
		release(t, outer)
		if !isHeld(t, m, page) || inner.Context().Err() != nil {
			t.Error("the lock was released while a nested lease is held")
		}
		release(t, inner)
		if isHeld(t, m, page) || !errors.Is(context.Cause(inner.Context()), context.Canceled) || outer.Context().Err() == nil {
			t.Error("the lock is held after all leases were released")
		}
		release(t, between)
		// A context of a lease that was released opens nothing.
		l := acquire(t, m, t.Context(), page)
		if _, err := m.Acquire(context.WithoutCancel(outer.Context()), page, locks.FailFast()); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("%v", err)
		}
		release(t, l)
	})
}

// Two goroutines of one process are as strange to each other as two processes.
func TestOtherCallersOfTheProcessWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := open(t, locks.Options{})
		var inside, done atomic.Int32
		for range 8 {
			go func() {
				err := m.Do(t.Context(), page, func(ctx context.Context, _ *locks.Lease) error {
					if inside.Add(1) != 1 {
						t.Error("two are inside")
					}
					defer inside.Add(-1)
					return m.Do(ctx, page, func(context.Context, *locks.Lease) error {
						time.Sleep(time.Second)
						return nil
					})
				}, locks.Within(time.Minute))
				if err != nil {
					t.Error(err)
				}
				done.Add(1)
			}()
		}
		time.Sleep(time.Minute)
		if done.Load() != 8 {
			t.Errorf("%d of 8 have had the lock", done.Load())
		}
	})
}

func TestExtend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		l := acquire(t, m, t.Context(), locks.Descriptor{Subject: "schema", Predicate: "writing", Resources: []string{"1"}})
		if err := l.Extend(t.Context(), 0); err == nil || errors.Is(err, locks.ErrLost) {
			t.Errorf("extension by nothing: %v", err)
		}
		if err := l.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if l.TTL() != time.Hour || l.Descriptor().TTL != time.Hour {
			t.Errorf("TTL %s", l.TTL())
		}
		p.Fail(errors.New("database is down"))
		time.Sleep(50 * time.Minute)
		if l.Context().Err() != nil {
			t.Errorf("the lease ended before its new TTL: %v", context.Cause(l.Context()))
		}
		p.Fail(nil)
		time.Sleep(time.Minute)
		if err := l.Extend(t.Context(), time.Second); err != nil || l.TTL() != time.Second {
			t.Errorf("shorter: %v, TTL %s", err, l.TTL())
		}
		p.Fail(errors.New("database is down"))
		time.Sleep(time.Second)
		if !errors.Is(context.Cause(l.Context()), locks.ErrLost) {
			t.Error("the lease outlived its shorter TTL")
		}
		p.Fail(nil)
		if err := l.Extend(t.Context(), time.Hour); !errors.Is(err, locks.ErrLost) {
			t.Errorf("extension of a lost lease: %v", err)
		}
	})
}

func TestCloseEndsTheLeases(t *testing.T) {
	t.Parallel()
	m, p := open(t, locks.Options{})
	l := acquire(t, m, t.Context(), page)
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(l.Context()); !errors.Is(cause, locks.ErrClosed) {
		t.Errorf("context ended because of %v", cause)
	}
	if _, held := p.Holder(requestOf(l)); held {
		t.Error("the lock was not released")
	}
	if _, err := m.Acquire(t.Context(), page); !errors.Is(err, locks.ErrClosed) || !strings.HasSuffix(err.Error(), ": the locks of this process are closed") {
		t.Errorf("%v, want ErrClosed", err)
	}
}

func TestOpenRefusesNoProvider(t *testing.T) {
	t.Parallel()
	if _, err := locks.Open(t.Context(), locks.Options{}); err == nil {
		t.Error("opened without a provider")
	}
}

func TestGuardNeedsADatabase(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	l := acquire(t, m, t.Context(), page)
	if err := l.Guard(t.Context(), nil); !errors.Is(err, locks.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
	release(t, l)
}

func ExampleParse() {
	d, err := locks.Parse("lock:exclusive:page:extracting:fs-abc123:doc-456:3")
	fmt.Println(d.Subject, d.Resources, err)
	// Output: page [fs-abc123 doc-456 3] <nil>
}

// The end of the context that a lease was acquired with ends the lease: nobody renews it any
// more, also when its holder has forgotten it.
func TestContextEndsTheLease(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(m *locks.Manager, ctx context.Context) (locks.Leases, error){
		"one": func(m *locks.Manager, ctx context.Context) (locks.Leases, error) {
			l, err := m.Acquire(ctx, fileset)
			return locks.Leases{l}, err
		},
		"a set with intents": func(m *locks.Manager, ctx context.Context) (locks.Leases, error) {
			return m.AcquireAll(ctx, []locks.Descriptor{below(fileset, "page", "1"), below(fileset, "page", "2")}, locks.WithIntents())
		},
		"one that is stolen": func(m *locks.Manager, ctx context.Context) (locks.Leases, error) {
			victim := acquire(t, m, context.Background(), fileset)
			l, err := m.Steal(ctx, find(t, m, victim), fileset)
			return locks.Leases{l}, err
		},
		"a nested one, whose first was released": func(m *locks.Manager, ctx context.Context) (locks.Leases, error) {
			first := acquire(t, m, context.Background(), fileset)
			end, _ := ctx.Deadline()
			ctx, cancel := context.WithDeadline(context.WithoutCancel(first.Context()), end)
			context.AfterFunc(ctx, cancel)
			l, err := m.Acquire(ctx, fileset)
			release(t, first)
			return locks.Leases{l}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, _ := open(t, locks.Options{})
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				defer cancel()
				leases, err := take(m, ctx)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour - time.Second)
				if leases[0].Context().Err() != nil || !isHeld(t, m, fileset) {
					t.Fatal("the lease has ended before its context")
				}
				<-leases[0].Context().Done()
				if cause := context.Cause(leases[0].Context()); !errors.Is(cause, context.DeadlineExceeded) {
					t.Errorf("cause %v", cause)
				}
				synctest.Wait()
				if !isHeld(t, m, fileset) {
					t.Error("the lock is free while its holder may still be about to stop")
				}
				if err := leases[0].Extend(t.Context(), time.Hour); !errors.Is(err, locks.ErrLost) {
					t.Errorf("extend: %v, want ErrLost", err)
				}
				time.Sleep(locks.DefaultTTL)
				if isHeld(t, m, fileset) {
					t.Error("the lock is held a TTL after the end of its context")
				}
			})
		})
	}
}

// A lease that was released is nobody's, though one that was nested in it goes on.
func TestReleasedLeaseIsNotUsed(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	outer := acquire(t, m, t.Context(), page)
	nested := acquire(t, m, outer.Context(), page)
	release(t, outer)
	if err := outer.Extend(t.Context(), time.Minute); !errors.Is(err, locks.ErrLost) || nested.TTL() != page.TTL {
		t.Errorf("extend: %v, want ErrLost; the TTL is %s", err, nested.TTL())
	}
	if err := outer.Guard(t.Context(), nil); !errors.Is(err, locks.ErrLost) || !errors.Is(err, locks.ErrFenced) {
		t.Errorf("guard: %v, want ErrLost and ErrFenced", err)
	}
	if err := nested.Extend(t.Context(), time.Minute); err != nil {
		t.Errorf("the nested one: %v", err)
	}
	release(t, nested)
}

// What has the values of a lease's context, and not its end, hears of the loss too, and
// does not wait for itself.
func TestNestedLeaseBeyondItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		parent, cancel := context.WithCancel(t.Context())
		outer := acquire(t, m, parent, page)
		nested := acquire(t, m, context.WithoutCancel(outer.Context()), page)
		r, _ := p.Holder(requestOf(outer))
		p.Expire(r)
		<-nested.Context().Done()
		if cause := context.Cause(nested.Context()); !errors.Is(cause, locks.ErrLost) {
			t.Errorf("ended because of %v", cause)
		}
		if _, err := m.Acquire(context.WithoutCancel(nested.Context()), page); !errors.Is(err, locks.ErrLost) {
			t.Errorf("%v, want ErrLost at once", err)
		}
		_, _ = nested.Release(t.Context()), outer.Release(t.Context())

		outer = acquire(t, m, parent, page)
		nested = acquire(t, m, outer.Context(), page)
		cancel()
		if err := nested.Release(t.Context()); err != nil {
			t.Errorf("a caller that has given up has lost nothing: %v", err)
		}
		began := time.Now()
		if _, err := m.Acquire(context.WithoutCancel(outer.Context()), page); !errors.Is(err, context.Canceled) || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		release(t, outer)
	})
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	for _, o := range []locks.Options{
		{Region: strings.Repeat("x", 101)}, {Region: " LOCKS"}, {Subjects: []string{""}}, {Predicates: []string{"a\nb"}},
		{Region: "LO\u200bCKS"}, {Subjects: []string{"in\u202evoice"}},
	} {
		o.Provider = &locktest.Memory{}
		if _, err := locks.Open(t.Context(), o); err == nil {
			t.Errorf("opened with %+v", o)
		}
	}
	m, _ := open(t, locks.Options{})
	l := acquire(t, m, t.Context(), page)
	for _, option := range []locks.Option{locks.Retry(locks.Backoff(-time.Second, 2)), locks.Within(0)} {
		if _, err := m.Acquire(t.Context(), page, option); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("%v", err)
		}
	}
	for field, option := range map[string]locks.Option{"retry": locks.Retry(nil), "within": locks.Within(-1), "options": nil} {
		var mistake *locks.DescriptorError
		if _, err := m.Acquire(t.Context(), page, option); !errors.As(err, &mistake) || mistake.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	release(t, l)
}
