package locks_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

// lineless is a provider without a line. Where it tells, it tells of releases.
type lineless struct {
	*locktest.Memory
	tells bool
	// answer is how long an attempt takes.
	answer time.Duration

	mu sync.Mutex
	// listeners are those of this provider that listen now, listened how many ever did.
	listeners map[*func(string)]bool
	listened  int
	deaf      error
}

func (p *lineless) Capabilities() lock.Capabilities {
	c := p.Memory.Capabilities()
	c.Line = nil
	if p.tells {
		c.Notify = p.notify
	}
	return c
}

func (p *lineless) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	time.Sleep(p.answer)
	return p.Memory.Acquire(ctx, r)
}

func (p *lineless) Release(ctx context.Context, g lock.Grant) error {
	err := p.Memory.Release(ctx, g)
	p.mu.Lock()
	defer p.mu.Unlock()
	for free := range p.listeners {
		(*free)(g.Key)
	}
	return err
}

func (p *lineless) notify(ctx context.Context, _ string, free func(key string)) error {
	p.mu.Lock()
	p.listened++
	if p.deaf != nil {
		defer p.mu.Unlock()
		return p.deaf
	}
	if p.listeners == nil {
		p.listeners = make(map[*func(string)]bool)
	}
	p.listeners[&free] = true
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.listeners, &free)
	return context.Cause(ctx)
}

func (p *lineless) listening() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.listeners)
}

// managerOf is another manager of the same locks.
func managerOf(t *testing.T, p *lineless, node string) *locks.Manager {
	t.Helper()
	m, err := locks.Open(t.Context(), locks.Options{Provider: p, Node: node})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return m
}

// waiters begin to wait one after the other. Each gets the lock, says so and releases it.
func waiters(t *testing.T, m *locks.Manager, d locks.Descriptor, n int, options ...locks.Option) <-chan int {
	t.Helper()
	served := make(chan int, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			l, err := m.Acquire(t.Context(), d, options...)
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
				return
			}
			served <- i
			release(t, l)
		})
		synctest.Wait()
	}
	go func() {
		all.Wait()
		close(served)
	}()
	return served
}

func TestManyWaitersAskAsOne(t *testing.T) {
	t.Parallel()
	reads := page
	reads.Mode = locks.Shared
	for name, tc := range map[string]struct {
		tells bool
		wants locks.Descriptor
	}{
		"told of releases": {true, page}, "not told": {false, page}, "readers": {true, reads},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(map[int]int)
			for _, n := range []int{1, 100} {
				synctest.Test(t, func(t *testing.T) {
					p := &lineless{Memory: &locktest.Memory{}, tells: tc.tells}
					held := acquire(t, managerOf(t, p, "a"), t.Context(), page)
					served := waiters(t, managerOf(t, p, "b"), tc.wants, n, locks.Within(time.Hour))
					time.Sleep(10 * time.Second)
					asked[n] = p.Attempts(page.Key())
					release(t, held)
					for range served {
					}
				})
			}
			if asked[100] > asked[1]+2 || asked[1] < 10 { // Their pauses are spread.
				t.Errorf("100 have asked %d times, one %d times", asked[100], asked[1])
			}
		})
	}
}

func TestTheQueueIsServedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &lineless{Memory: &locktest.Memory{}}
		m := managerOf(t, p, "a")
		held := acquire(t, m, t.Context(), page)
		served := waiters(t, m, page, 3, locks.Retry(locks.Fixed(time.Hour, 1)))
		urgent := make(chan struct{})
		go func() {
			defer close(urgent)
			l, err := m.Acquire(t.Context(), page, locks.Priority(1), locks.Retry(locks.Fixed(time.Hour, 1)))
			if err != nil {
				t.Error(err)
				return
			}
			if n := len(served); n > 0 {
				t.Errorf("%d were served before one with a greater priority", n)
			}
			release(t, l)
		}()
		synctest.Wait()
		began := time.Now()
		release(t, held)
		<-urgent
		var order []int
		for i := range served {
			order = append(order, i)
		}
		if !slices.Equal(order, []int{0, 1, 2}) || time.Since(began) > 0 {
			t.Errorf("served in the order %v, after %s", order, time.Since(began))
		}
	})
}

// A release by another process is told, or is found by asking: at once where it is told.
func TestReleasesOfOthersAreNoticed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		p    *lineless
		most time.Duration
	}{
		"told":         {&lineless{tells: true}, 0},
		"told in vain": {&lineless{tells: true, deaf: errors.New("no channel")}, 1100 * time.Millisecond},
		"not told":     {&lineless{}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tc.p.Memory = &locktest.Memory{}
				held := acquire(t, managerOf(t, tc.p, "a"), t.Context(), page)
				served := waiters(t, managerOf(t, tc.p, "b"), page, 2, locks.Retry(locks.Fixed(time.Minute, 3)))
				time.Sleep(30 * time.Second)
				began := time.Now()
				release(t, held)
				for range served {
				}
				if took := time.Since(began); took > tc.most {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// Nobody tells of a lease that expires.
func TestAnExpiryIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &lineless{Memory: &locktest.Memory{}}
		if _, err := p.Memory.Acquire(t.Context(), lock.Request{Key: page.Key(), Region: locks.DefaultRegion, TTL: 20 * time.Second}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range waiters(t, managerOf(t, p, "b"), page, 1, locks.Retry(locks.Fixed(time.Hour, 1))) {
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("a lease of 20s was noticed to be over after %s", took)
		}
	})
}

func TestOneWhoTriesOnceDoesNotPassTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &lineless{Memory: &locktest.Memory{}}
		held := acquire(t, managerOf(t, p, "a"), t.Context(), page)
		m := managerOf(t, p, "b")
		served := waiters(t, m, page, 1, locks.Retry(locks.Fixed(time.Minute, 3)))
		release(t, held)
		asked := p.Attempts(page.Key())
		var refused *locks.HeldError
		if _, err := m.Acquire(t.Context(), page, locks.FailFast()); !errors.As(err, &refused) || !refused.Waits || refused.Node != "b" {
			t.Errorf("%v does not say that another of b waits", err)
		}
		if n := p.Attempts(page.Key()); n != asked {
			t.Errorf("it has asked %d times", n-asked)
		}
		for range served {
		}
	})
}

// Those who can hold a lock together do not wait for each other's answers.
func TestSharersAskTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &lineless{Memory: &locktest.Memory{}, answer: time.Second}
		m := managerOf(t, p, "a")
		reads := page
		reads.Mode = locks.Shared
		began := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { release(t, acquire(t, m, t.Context(), reads)) })
		}
		all.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("ten readers took %s, want the time of one", took)
		}
		// They are served together, too.
		writer := acquire(t, m, t.Context(), page)
		for range 10 {
			all.Go(func() {
				l, err := m.Acquire(t.Context(), reads, locks.Retry(locks.Fixed(time.Hour, 1)))
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Hour / 2)
				release(t, l)
			})
		}
		time.Sleep(15 * time.Second)
		release(t, writer)
		began = time.Now()
		all.Wait()
		if took := time.Since(began); took > time.Hour/2+10*time.Second {
			t.Errorf("ten readers who waited took %s", took)
		}
	})
}

// A caller that holds what the first one waits for would wait for it for ever.
func TestAHolderPassesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &lineless{Memory: &locktest.Memory{}}
		m := managerOf(t, p, "a")
		other := page
		other.Resources = []string{"fs-1", "doc-2", "4"}
		first := acquire(t, m, t.Context(), page)
		done := make(chan struct{})
		go func() {
			defer close(done)
			all, err := m.AcquireAll(t.Context(), []locks.Descriptor{page, other}, locks.Retry(locks.Fixed(time.Hour, 1)))
			if err != nil {
				t.Error(err)
				return
			}
			if err := all.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		second := acquire(t, m, first.Context(), other)
		release(t, second)
		release(t, first)
		<-done
	})
}

// The process listens while somebody waits, and for some seconds more.
func TestTheProcessListensWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &lineless{Memory: &locktest.Memory{}, tells: true}
		a, b := managerOf(t, p, "a"), managerOf(t, p, "b")
		for range 3 {
			held := acquire(t, a, t.Context(), page)
			served := waiters(t, b, page, 5, locks.Within(time.Hour))
			time.Sleep(20 * time.Second)
			if n := p.listening(); n != 1 {
				t.Errorf("%d listen while others wait, want 1", n)
			}
			release(t, held)
			for range served {
			}
			time.Sleep(time.Second)
		}
		if p.listened != 1 {
			t.Errorf("the process began to listen %d times", p.listened)
		}
		time.Sleep(20 * time.Second)
		if n := p.listening(); n != 0 {
			t.Errorf("%d listen while nobody waits", n)
		}
		release(t, acquire(t, b, t.Context(), page))
		if p.listened != 1 {
			t.Error("it listens though the lock is free")
		}
	})
}

func TestCloseRefusesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &lineless{Memory: &locktest.Memory{}, tells: true}
		acquire(t, managerOf(t, p, "a"), t.Context(), page)
		m, err := locks.Open(t.Context(), locks.Options{Provider: p})
		if err != nil {
			t.Fatal(err)
		}
		refused := make(chan error)
		for range 3 {
			go func() {
				_, err := m.Acquire(t.Context(), page, locks.Retry(locks.Fixed(time.Hour, 1)))
				refused <- err
			}()
		}
		synctest.Wait()
		began := time.Now()
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for range 3 {
			if err := <-refused; !errors.Is(err, locks.ErrClosed) {
				t.Errorf("one who waits gets %v, want ErrClosed", err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("they were refused after %s", took)
		}
	})
}
