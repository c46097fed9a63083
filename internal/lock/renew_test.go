package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// answer is a renewal that gives every lease the same answer.
func answer(r lock.Renewal) func(context.Context, []lock.Grant) ([]lock.Renewal, error) {
	return func(_ context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
		renewals := make([]lock.Renewal, len(grants))
		for i := range renewals {
			renewals[i] = r
		}
		return renewals, nil
	}
}

func down(context.Context, []lock.Grant) ([]lock.Renewal, error) { return nil, errDown }

// hang is a renewal whose connection is dead.
func hang(ctx context.Context, _ []lock.Grant) ([]lock.Renewal, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestLeaseIsLostWhenTrustEnds(t *testing.T) {
	for name, renewal := range map[string]func(context.Context, []lock.Grant) ([]lock.Renewal, error){
		"errors":          down,
		"unknown answers": answer(lock.Unknown),
		"no answers":      hang,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
				p.answerWith(renewal)
				l := acquire(t, k, want("order"))
				if after := lostAfter(t, l); after != trust {
					t.Errorf("lost after %s, want %s", after, trust)
				}
				if n := len(p.calls()); n < 2 {
					t.Errorf("%d renewals were tried, want several", n)
				}
				if err := l.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
					t.Errorf("release: %v, want ErrLost", err)
				}
				if p.Holds(l.Grant()) {
					t.Error("what stood at the provider was not given back")
				}
			})
		})
	}
}

func TestErrorsBelowTheEndOfTrustAreNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		p.answerWith(down)
		l := acquire(t, k, want("order"))
		time.Sleep(trust - 10*time.Second)
		alive(t, l)
		p.answerWith(nil)
		time.Sleep(5 * ttl)
		alive(t, l)
		release(t, l)
	})
}

// The call fails for one lease of two, and has renewed the other.
func TestAnswersBesideAnErrorCount(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		a, b := acquire(t, k, want("a")), acquire(t, k, want("b"))
		p.answerWith(func(_ context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
			renewals := make([]lock.Renewal, len(grants))
			for i, g := range grants {
				if g.Key == "a" {
					renewals[i] = lock.Renewed
				}
			}
			return renewals, errDown
		})
		if after := lostAfter(t, b); after != trust {
			t.Errorf("lost after %s, want %s", after, trust)
		}
		alive(t, a)
		p.answerWith(nil)
		_ = b.Release(t.Context())
		release(t, a)
	})
}

func TestSlowSuccessDoesNotStretchTrust(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		const slow = 9 * time.Second
		p.answerWith(func(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
			renewals, err := p.Memory.Renew(ctx, grants)
			time.Sleep(slow)
			p.answerWith(down)
			return renewals, err
		})
		// The one renewal that succeeds begins after a third of the TTL.
		if after := lostAfter(t, l); after != ttl/3+trust {
			t.Errorf("lost after %s, want %s: trust counts from the beginning of the renewal", after, ttl/3+trust)
		}
		_ = l.Release(t.Context())
	})
}

func TestSuccessAfterTheEndOfTrustDoesNotRevive(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		p.answerWith(func(context.Context, []lock.Grant) ([]lock.Renewal, error) {
			time.Sleep(trust) // deaf to its context
			return []lock.Renewal{lock.Renewed}, nil
		})
		if after := lostAfter(t, l); after != trust {
			t.Errorf("lost after %s, want %s", after, trust)
		}
		time.Sleep(ttl)
		if err := l.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
	})
}

func TestTermThatWasReplacedIsLostAtTheNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		p.Expire(l.Grant())
		thief, err := p.Acquire(t.Context(), want("order"))
		if err != nil {
			t.Fatal(err)
		}
		if after := lostAfter(t, l); after != ttl/3 {
			t.Errorf("lost after %s, want %s", after, ttl/3)
		}
		if n := p.lost(t); n != 1 {
			t.Errorf("%v leases counted as lost", n)
		}
		if err := l.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
		if !p.Holds(thief) {
			t.Error("release took the thief's lock away")
		}
	})
}

func TestReleaseDuringARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		p.answerWith(func(context.Context, []lock.Grant) ([]lock.Renewal, error) {
			time.Sleep(5 * time.Second)
			return []lock.Renewal{lock.Lost}, nil // because it was released meanwhile
		})
		time.Sleep(ttl/3 + time.Second)
		release(t, l)
		time.Sleep(10 * time.Second)
		if cause := context.Cause(l.Context()); !errors.Is(cause, context.Canceled) {
			t.Errorf("lease ended because of %v, want its release", cause)
		}
		if n := p.lost(t); n != 0 {
			t.Errorf("%v leases counted as lost", n)
		}
	})
}

func TestHungRenewalHoldsUpNoOtherLease(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		p.answerWith(func(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
			for _, g := range grants {
				if g.Key == "order" {
					return hang(ctx, grants)
				}
			}
			return p.Memory.Renew(ctx, grants)
		})
		slow := acquire(t, k, want("order"))
		time.Sleep(ttl/3 + time.Second) // its renewal hangs now
		brief := want("wes")
		brief.TTL = 3 * time.Second
		l := acquire(t, k, brief)
		time.Sleep(10 * time.Second)
		alive(t, l)
		alive(t, slow)
		release(t, l)
		release(t, slow)
	})
}

func TestShortLeaseIsTrustedForAtLeastHalfItsTTL(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		p.answerWith(down)
		r := want("order")
		r.TTL = 100 * time.Millisecond
		l := acquire(t, k, r)
		if after := lostAfter(t, l); after != r.TTL/2 {
			t.Errorf("lost after %s, want half the TTL", after)
		}
		synctest.Wait()
		_ = l.Release(t.Context())
	})
}

func TestRenewNowDoesNotWaitForTheNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		k.RenewNow() // there is nothing to renew
		for _, key := range []string{"order", "wes"} {
			l := acquire(t, k, want(key))
			defer release(t, l)
		}
		time.Sleep(time.Second)
		k.RenewNow()
		synctest.Wait()
		if got := p.calls(); len(got) != 1 || got[0] != 2 {
			t.Fatalf("renewals were of %v leases, want both at once", got)
		}
		// A third of the TTL counts from here.
		time.Sleep(ttl/3 - time.Millisecond)
		synctest.Wait()
		if n := len(p.calls()); n != 1 {
			t.Errorf("%d renewals, want no other yet", n)
		}
	})
}

// Leases are taken a second apart: a provider without a pace sees their renewals together, one
// with a pace sees each lease at its own.
func TestLeasesAreRenewedAtThePaceOfTheProvider(t *testing.T) {
	t.Parallel()
	for every, pace := range map[time.Duration]time.Duration{
		0: ttl / 3, ttl / 12: ttl / 12, ttl / 2: ttl / 2,
	} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &provider{renewEvery: every}
				renewedAt := make(map[string][]time.Time)
				p.answerWith(func(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
					p.mu.Lock()
					defer p.mu.Unlock()
					for _, g := range grants {
						renewedAt[g.Key] = append(renewedAt[g.Key], time.Now())
					}
					return p.Memory.Renew(ctx, grants)
				})
				k := lock.NewKeeper(lock.KeeperOptions{Provider: p})
				first := acquire(t, k, want("first"))
				time.Sleep(time.Second)
				second := acquire(t, k, want("second"))
				time.Sleep(5*ttl - time.Second)
				if err := k.Close(context.Background()); err != nil {
					t.Error(err)
				}
				for _, l := range []*lock.Lease{first, second} {
					at, last := renewedAt[l.Grant().Key], l.Grant().Began
					if len(at) < int(5*ttl/pace)-1 {
						t.Errorf("%s was renewed %d times", l.Grant().Key, len(at))
					}
					for i, now := range at {
						together := every == 0 && i == 0 && l == second // sooner, with the first
						if gap := now.Sub(last); gap != pace && !together {
							t.Errorf("renewal %d of %s came after %s, want %s", i, l.Grant().Key, gap, pace)
						}
						last = now
					}
				}
				if alone := len(p.calls()) > len(renewedAt["first"]); alone != (every > 0) {
					t.Errorf("renewals share no call: %t", alone)
				}
			})
		})
	}
}
