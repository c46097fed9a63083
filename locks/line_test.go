package locks_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

// process returns another manager of the same locks, as another process has it.
func process(t *testing.T, p *locktest.Memory) *locks.Manager {
	t.Helper()
	m, err := locks.Open(t.Context(), locks.Options{Provider: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// arrivals are callers that had their turn, in order.
type arrivals struct {
	mu    sync.Mutex
	names []string
	times []time.Time
}

func (a *arrivals) order() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.names)
}

func (a *arrivals) at() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.times)
}

// wait acquires in the background, and releases a second later.
func (a *arrivals) wait(t *testing.T, m *locks.Manager, name string, d locks.Descriptor, options ...locks.Option) {
	t.Helper()
	go func() {
		l, err := m.Acquire(t.Context(), d, options...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		a.mu.Lock()
		a.names, a.times = append(a.names, name), append(a.times, time.Now())
		a.mu.Unlock()
		time.Sleep(time.Second)
		release(t, l)
	}()
	synctest.Wait()
}

func TestReleaseWakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"same process": 50 * time.Millisecond, "another process": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, p := open(t, locks.Options{})
				other := m
				if name == "another process" {
					other = process(t, p)
				}
				l := acquire(t, m, t.Context(), page)
				var a arrivals
				a.wait(t, other, "waiter", page, locks.Retry(locks.Fixed(time.Hour, 1)))
				time.Sleep(10*time.Minute + 70*time.Millisecond)
				release(t, l)
				released := time.Now()
				time.Sleep(5 * time.Second)
				if at := a.at(); len(at) != 1 || at[0].Sub(released) > limit {
					t.Errorf("had at %v, want %s after %s", at, limit, released)
				}
				if p.Waiting() != 0 {
					t.Error("a place is left in the line")
				}
			})
		})
	}
}

func TestThoseWhoWaitComeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		other := process(t, p)
		l := acquire(t, m, t.Context(), page)
		var a arrivals
		for _, w := range []struct {
			name string
			m    *locks.Manager
			how  []locks.Option
		}{
			{"1", m, nil},
			{"2", other, nil},
			{"urgent", other, []locks.Option{locks.Priority(5)}},
			{"3", m, []locks.Option{locks.Within(time.Minute)}},
			{"later", other, []locks.Option{locks.Priority(-5), locks.Within(time.Minute)}},
			{"4", other, []locks.Option{locks.Within(time.Minute)}},
		} {
			a.wait(t, w.m, w.name, page, w.how...)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		release(t, l)
		time.Sleep(20 * time.Second)
		if want := []string{"urgent", "1", "2", "3", "4", "later"}; !slices.Equal(a.order(), want) {
			t.Errorf("%v, want %v", a.order(), want)
		}
	})
}

// Readers come and go so that there is always one: the writer has its turn.
func TestWriterIsNotStarved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		other := process(t, p)
		var readers, writer arrivals
		for i := range 20 {
			readers.wait(t, other, "reader", in(page, locks.Shared), locks.Within(time.Minute))
			if i == 3 {
				writer.wait(t, m, "writer", page)
			}
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		reading, writing := readers.at(), writer.at()
		if len(writing) != 1 || len(reading) != 20 {
			t.Fatalf("%d writers, %d of 20 readers", len(writing), len(reading))
		}
		before := slices.DeleteFunc(reading, func(at time.Time) bool { return at.After(writing[0]) })
		if len(before) > 5 {
			t.Errorf("%d readers were before the writer", len(before))
		}
	})
}

// Each of three locks has two users that take it again and again, each for a second. A set
// of all three comes after those who hold or wait, and before all others.
func TestSetIsNotStarved(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"same process", "another process"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, p := open(t, locks.Options{})
				other := m
				if where == "another process" {
					other = process(t, p)
				}
				served := make([]atomic.Int64, 3)
				set := make([]locks.Descriptor, len(served))
				var users sync.WaitGroup
				defer users.Wait()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				for i := range set {
					set[i] = page
					set[i].Resources = []string{strconv.Itoa(i)}
					for range 2 {
						users.Go(func() {
							for ctx.Err() == nil {
								l, err := m.Acquire(t.Context(), set[i], locks.Within(time.Hour))
								if err != nil {
									t.Error(err)
									return
								}
								served[i].Add(1)
								time.Sleep(time.Second)
								release(t, l)
							}
						})
						time.Sleep(170 * time.Millisecond)
					}
				}
				time.Sleep(10 * time.Second)
				before := make([]int64, len(served))
				for i := range served {
					if before[i] = served[i].Load(); before[i] < 5 {
						t.Errorf("users of lock %d were served %d times", i, before[i])
					}
				}
				all, err := other.AcquireAll(t.Context(), set, locks.Within(10*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				for i := range served {
					if n := served[i].Load() - before[i]; n > 2 {
						t.Errorf("lock %d was granted %d times to others while the set waited", i, n)
					}
				}
				if err := all.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// lagging is a provider whose look notes callers while one of them acquires the lock: its
// place is written after the acquisition, which ends after the look.
type lagging struct {
	*locktest.Memory
	granted chan struct{}
}

func (l *lagging) Capabilities() locks.Capabilities {
	c := l.Memory.Capabilities()
	c.Line = l
	return c
}

func (l *lagging) Wait(ctx context.Context, requests []lock.Request) ([]lock.Turn, error) {
	<-l.granted
	return l.Memory.Wait(ctx, requests)
}

func (l *lagging) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g, err := l.Memory.Acquire(ctx, r)
	if err == nil {
		close(l.granted)
		time.Sleep(time.Millisecond)
	}
	return g, err
}

func TestOneWhoIsServedLeavesNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		first := acquire(t, m, t.Context(), page)
		slow, err := locks.Open(t.Context(), locks.Options{Provider: &lagging{p, make(chan struct{})}})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *locks.Lease, 1)
		go func() {
			l, err := slow.Acquire(t.Context(), page, locks.Retry(locks.Fixed(time.Second, 1)))
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		release(t, first)
		release(t, <-got)
		synctest.Wait()
		if p.Waiting() != 0 {
			t.Error("a place is left in the line")
		}
		if another, err := m.Acquire(t.Context(), page, locks.FailFast()); err != nil {
			t.Error(err)
		} else {
			release(t, another)
		}
		if err := slow.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A set waits for the lock that is held; its holder gets the other one.
func TestSetDoesNotBlockTheHolderItWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := open(t, locks.Options{})
		l := acquire(t, m, t.Context(), audit)
		done := make(chan error, 1)
		go func() {
			set, err := m.AcquireAll(t.Context(), []locks.Descriptor{page, audit})
			done <- errors.Join(err, set.Release(t.Context()))
		}()
		time.Sleep(time.Second)
		both := acquire(t, m, l.Context(), page)
		release(t, both)
		release(t, l)
		time.Sleep(time.Second)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestStealStale(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		other := process(t, p)
		l := acquire(t, m, t.Context(), page)
		if _, err := other.Acquire(t.Context(), page, locks.StealStale()); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("a lease that is renewed was stolen: %v", err)
		}
		synctest.Wait() // The place in line is given back.
		p.ExpireTerm(l.Term())
		stolen, err := other.Acquire(t.Context(), page, locks.StealStale())
		if err != nil || stolen.Fence() <= l.Fence() {
			t.Fatalf("%v", err)
		}
		release(t, stolen)
		_ = l.Release(t.Context())
	})
}

func TestCloseEndsWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		l := acquire(t, process(t, p), t.Context(), page)
		got := make(chan error, 1)
		go func() {
			_, err := m.Acquire(t.Context(), page, locks.Retry(locks.Fixed(time.Hour, 1)))
			got <- err
		}()
		time.Sleep(time.Second)
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-got; !errors.Is(err, locks.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		release(t, l)
	})
}

// The pauses of a caller panic, and the caller goes on.
func TestPanicInPausesLeavesNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		other := process(t, p)
		l := acquire(t, other, t.Context(), page)
		func() {
			defer func() { _ = recover() }()
			_, _ = m.Acquire(t.Context(), page, locks.Retry(func(yield func(time.Duration) bool) {
				yield(2 * time.Second)
				panic("of the caller")
			}))
		}()
		release(t, l)
		time.Sleep(time.Minute)
		if isHeld(t, other, page) {
			t.Error("a free lock is refused for a place that nobody has")
		}
	})
}

// The pauses panic at once, or when they end because the lock was acquired.
func TestPanicInPausesLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	for name, pauses := range map[string]locks.Pauses{
		"at once": func(func(time.Duration) bool) { panic("of the caller") },
		"at the end": func(yield func(time.Duration) bool) {
			yield(2 * time.Second)
			panic("of the caller")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, p := open(t, locks.Options{Policies: []locks.Policy{{Name: "one", Subject: "schema", PerNode: 1}}})
				other, schema := process(t, p), locks.Descriptor{Subject: "schema", Predicate: "writing", Resources: []string{"a"}}
				outer, l := acquire(t, m, t.Context(), page), acquire(t, other, t.Context(), schema)
				time.AfterFunc(time.Second, func() { release(t, l) })
				func() {
					defer func() { _ = recover() }()
					_, _ = m.AcquireAll(outer.Context(), []locks.Descriptor{page, schema}, locks.Retry(pauses))
				}()
				time.Sleep(time.Minute)
				if isHeld(t, m, schema) {
					t.Error("the lock is held, or its place in the policy")
				}
				release(t, outer)
				if isHeld(t, other, page) {
					t.Error("the nested lease is held")
				}
			})
		})
	}
}

// busy makes one attempt at a time, which takes long.
type busy struct{ *locktest.Memory }

func (b busy) Capabilities() locks.Capabilities {
	c := b.Memory.Capabilities()
	c.MostAttempts = 1
	return c
}

func (b busy) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	time.Sleep(4 * time.Second)
	return b.Memory.Acquire(ctx, r)
}

// Attempts of others take longer than one waits for its turn in the process.
func TestStealStaleOutlastsABusyProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, err := locks.Open(t.Context(), locks.Options{Provider: busy{new(locktest.Memory)}})
		if err != nil {
			t.Fatal(err)
		}
		var others sync.WaitGroup
		for range 2 {
			others.Go(func() { release(t, acquire(t, m, t.Context(), audit)) })
		}
		time.Sleep(time.Millisecond)
		l, err := m.Acquire(t.Context(), page, locks.StealStale())
		if err != nil {
			t.Fatal(err)
		}
		release(t, l)
		others.Wait()
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
