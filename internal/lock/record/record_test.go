package record_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/record"
)

func want(key, node string) lock.Request {
	return lock.Request{Key: key, Region: "DEFAULT", TTL: time.Minute, Node: node}
}

func acquire(t *testing.T, p *record.Provider, r lock.Request) lock.Grant {
	t.Helper()
	g, err := p.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// refused returns what the refusal says is left of the lease.
func refused(t *testing.T, p *record.Provider, r lock.Request) time.Duration {
	t.Helper()
	_, err := p.Acquire(t.Context(), r)
	held, ok := errors.AsType[*lock.HeldError](err)
	if !ok {
		t.Fatalf("acquire: %v, want a refusal", err)
	}
	return held.Left
}

// A holder dies. One process has seen its record before, and one has not.
func TestDeadHolderIsWaitedForFromTheFirstLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		dead := acquire(t, s.provider(), want("order", "dead"))
		old, late := s.provider(), s.provider()
		if left := refused(t, old, want("order", "old")); left != time.Minute {
			t.Errorf("%s are left at the first look", left)
		}
		time.Sleep(40 * time.Second)
		if left := refused(t, late, want("order", "late")); left != time.Minute {
			t.Errorf("%s are left at the first look of a late process", left)
		}
		time.Sleep(20*time.Second - time.Millisecond)
		if left := refused(t, old, want("order", "old")); left != time.Millisecond {
			t.Errorf("%s are left", left)
		}
		time.Sleep(time.Millisecond)
		_ = refused(t, late, want("order", "late"))
		if g := acquire(t, old, want("order", "old")); !g.Recovered || g.Fence <= dead.Fence {
			t.Errorf("taken over: %+v", g)
		}
	})
}

// The record of another program does not say for how long its lease lasts.
func TestLeaseWithoutATTLLastsForThatOfTheObserver(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &store{numbered: numbered}
			if _, err := s.Put(t.Context(), record.Record{Region: "DEFAULT", Key: "order", Term: "foreign"}); err != nil {
				t.Fatal(err)
			}
			p := s.provider()
			if left := refused(t, p, want("order", "a")); left != time.Minute {
				t.Errorf("%s are left at the first look", left)
			}
			time.Sleep(time.Minute)
			if g := acquire(t, p, want("order", "a")); !g.Recovered {
				t.Errorf("taken over: %+v", g)
			}
		})
	}
}

// A process is started anew before it has seen the record for a TTL, again and again.
func TestProcessThatCrashesTakesNoLockFromTheDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		acquire(t, s.provider(), want("order", "dead"))
		for range 10 {
			p := s.provider()
			for range 5 {
				_ = refused(t, p, want("order", "crashes"))
				time.Sleep(11 * time.Second)
			}
		}
	})
}

// The answer to an acquisition is lost, and so is what would tell its end.
func TestLockIsGivenBackWhoseAcquisitionIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &store{numbered: numbered}
			calls := 0
			s.answer = func(call string) error {
				calls++
				if call == "put" && calls <= 2 || call == "get" && calls == 3 {
					return errUnanswered
				}
				return nil
			}
			if numbered {
				calls = 1 // It writes before it reads.
			}
			if _, err := s.provider().Acquire(t.Context(), want("order", "a")); !errors.Is(err, errUnanswered) {
				t.Errorf("acquire: %v", err)
			}
			s.answer = nil
			if g := acquire(t, s.provider(), want("order", "b")); g.Recovered || !numbered && g.Fence != 2 {
				t.Errorf("grant %+v, want one after a release", g)
			}
		})
	}
}

// proxied is a store behind something that answers the next writes itself.
type proxied struct {
	*store
	writes int
}

func (p *proxied) Put(ctx context.Context, r record.Record) (record.Record, error) {
	if p.writes > 0 {
		p.writes--
		return record.Record{}, nil
	}
	return p.store.Put(ctx, r)
}

// An answer that does not have what was written, such as an object of a gateway, grants no lock.
func TestAnswerWithoutTheRecordGrantsNothing(t *testing.T) {
	t.Parallel()
	for writes, granted := range map[int]bool{1: true, 1000: false} {
		synctest.Test(t, func(t *testing.T) {
			s := &proxied{&store{}, writes}
			p := record.New(record.Options{Records: s, Capabilities: lock.Capabilities{Name: "proxied"}})
			g, err := p.Acquire(t.Context(), want("order", "a"))
			if (err == nil) != granted || errors.Is(err, lock.ErrHeld) {
				t.Fatalf("%d writes unanswered: %v", writes, err)
			}
			s.writes = 0
			if granted && g.Fence == 0 {
				t.Errorf("grant %+v has no fencing token", g)
			}
			_, err = p.Acquire(t.Context(), want("order", "b"))
			if granted != errors.Is(err, lock.ErrHeld) {
				t.Errorf("then another: %v", err)
			}
		})
	}
}

// late is a store that carries out one write when a test does it.
type late struct {
	*store
	hold bool
	held record.Record
}

func (l *late) Put(ctx context.Context, r record.Record) (record.Record, error) {
	if l.hold {
		l.hold, l.held = false, r
		return record.Record{}, errUnanswered
	}
	return l.store.Put(ctx, r)
}

// The first of two writes of an acquisition is carried out when a thief has released the lock.
func TestTermThatALateWriteBringsBackIsNotRenewed(t *testing.T) {
	t.Parallel()
	s := &store{numbered: true}
	l := &late{store: s, hold: true}
	holder := record.New(record.Options{Records: l, Capabilities: lock.Capabilities{Name: "late"}, Numbered: true})
	thief := s.provider()
	g := acquire(t, holder, want("order", "a"))
	found, err := thief.Find(t.Context(), lock.Query{Region: "DEFAULT", Limit: 1})
	if err != nil || len(found) != 1 {
		t.Fatal(err, found)
	}
	stolen, err := thief.Steal(t.Context(), want("order", "b"), found[0], lock.By{})
	if err != nil {
		t.Fatal(err)
	}
	if err := thief.Release(t.Context(), stolen); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), l.held); err != nil {
		t.Fatal(err)
	}
	if got, err := holder.Renew(t.Context(), []lock.Grant{g}); err != nil || got[0] != lock.Lost {
		t.Errorf("renewal of fence %d after %d: %v, %v, want lost", g.Fence, stolen.Fence, got, err)
	}
}

// Another program writes the record without a change, as one does that labels it.
func TestWriteOfAnotherProgramIsSeen(t *testing.T) {
	t.Parallel()
	for numbered, before := range map[bool]lock.Renewal{false: lock.Renewed, true: lock.Lost} {
		s := &store{numbered: numbered}
		p := s.provider()
		touch := func(key string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.store(s.records[at{"DEFAULT", key}])
		}
		renew := func(g lock.Grant, want lock.Renewal) {
			t.Helper()
			if got, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || got[0] != want {
				t.Errorf("numbered %t: renewal of %s: %v, %v, want %v", numbered, g.Key, got, err, want)
			}
		}
		fresh, old := acquire(t, p, want("fresh", "a")), acquire(t, p, want("old", "a"))
		touch(fresh.Key)
		renew(fresh, before)
		renew(old, lock.Renewed)
		touch(old.Key)
		renew(old, lock.Renewed)
	}
}

// calls are those of a free lock that is acquired, renewed and released.
func TestCallsOfALock(t *testing.T) {
	t.Parallel()
	for numbered, want := range map[bool]string{false: "[get put put put]", true: "[put put delete]"} {
		s := &store{numbered: numbered}
		var calls []string
		s.answer = func(call string) error {
			calls = append(calls, call)
			return nil
		}
		p := s.provider()
		g := acquire(t, p, lock.Request{Key: "order", Region: "DEFAULT", TTL: time.Minute})
		if got, err := p.Renew(t.Context(), []lock.Grant{g}); err != nil || got[0] != lock.Renewed {
			t.Errorf("renewal: %v, %v", got, err)
		}
		if err := p.Release(t.Context(), g); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(calls); got != want {
			t.Errorf("numbered %t: calls are %s, want %s", numbered, got, want)
		}
		if left := s.records[at{"DEFAULT", "order"}]; (left.Version == "") != numbered || left.Term != "" {
			t.Errorf("numbered %t: it leaves %+v", numbered, left)
		}
	}
}

// A process that waits for a lock only reads, but for the first time.
func TestCallsOfOneWhoWaits(t *testing.T) {
	t.Parallel()
	s := &store{numbered: true}
	acquire(t, s.provider(), want("order", "a"))
	var calls []string
	s.answer = func(call string) error {
		calls = append(calls, call)
		return nil
	}
	p := s.provider()
	for range 3 {
		_ = refused(t, p, want("order", "b"))
	}
	if got := fmt.Sprint(calls); got != "[put get get get]" {
		t.Errorf("calls are %s", got)
	}
}

// slow is a store whose writes take a second.
type slow struct{ *store }

func (s slow) Put(ctx context.Context, r record.Record) (record.Record, error) {
	time.Sleep(time.Second)
	return s.store.Put(ctx, r)
}

func TestRenewalsRunBesideEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		p := record.New(record.Options{Records: slow{s}, Capabilities: lock.Capabilities{Name: "slow"}})
		grants := make([]lock.Grant, 40)
		for i := range grants {
			grants[i] = acquire(t, s.provider(), want(fmt.Sprint(i), "a"))
		}
		began := time.Now()
		if _, err := p.Renew(t.Context(), grants); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("40 renewals took %s, want 16 at a time: %v", time.Since(began), err)
		}
		down := errors.New("store is down")
		s.answer = func(string) error { return down }
		if got, err := p.Renew(t.Context(), grants); !errors.Is(err, down) || got[0] != lock.Unknown {
			t.Errorf("renewal while the store is down: %v, %v", got[0], err)
		}
	})
}

// The store answers for one lease of three.
func TestRenewalSaysWhyLeasesAreUnknown(t *testing.T) {
	t.Parallel()
	s := new(store)
	p := s.provider()
	grants := []lock.Grant{acquire(t, p, want("a", "a")), acquire(t, p, want("b", "a")), acquire(t, p, want("c", "a"))}
	puts, down := 0, errors.New("store is down")
	s.answer = func(call string) error {
		if call == "put" {
			puts++
		}
		if puts == 1 {
			return nil
		}
		return down
	}
	got, err := p.Renew(t.Context(), grants)
	slices.Sort(got)
	if want := []lock.Renewal{lock.Unknown, lock.Unknown, lock.Renewed}; !errors.Is(err, down) || !slices.Equal(got, want) {
		t.Errorf("renewals are %v, %v", got, err)
	}
}

// A process forgets records that it has not looked at for long, when it knows of many.
func TestOldRecordsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 10_000
		s := new(store)
		s.mu.Lock()
		for i := range many {
			s.store(record.Record{Region: "DEFAULT", Key: fmt.Sprint(i), Term: "dead", TTL: time.Minute})
		}
		s.mu.Unlock()
		p := s.provider()
		if _, err := p.Find(t.Context(), lock.Query{Region: "DEFAULT", Limit: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		acquire(t, p, want("1", "a"))
		time.Sleep(2 * time.Hour)
		acquire(t, p, want("another", "a"))
		if left := refused(t, p, want("2", "a")); left != time.Minute {
			t.Errorf("%s are left of a lease that was forgotten", left)
		}
	})
}

// A process that knows of many live locks would look at all of them for each new one.
func TestOldRecordsAreLookedForOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		s.mu.Lock()
		for i := range 10_000 {
			s.store(record.Record{Region: "DEFAULT", Key: fmt.Sprint(i), Term: "alive", TTL: 24 * time.Hour})
		}
		for _, key := range []string{"first", "second"} {
			s.store(record.Record{Region: "DEFAULT", Key: key, Term: "dead", TTL: time.Second})
		}
		s.mu.Unlock()
		p := s.provider()
		if _, err := p.Find(t.Context(), lock.Query{Region: "DEFAULT", Limit: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		acquire(t, p, want("looks", "a")) // The dead were over for a second less than an hour.
		time.Sleep(30 * time.Second)
		acquire(t, p, want("does not look", "a"))
		if g := acquire(t, p, want("first", "a")); !g.Recovered {
			t.Errorf("taken over: %+v", g)
		}
		time.Sleep(30 * time.Second)
		acquire(t, p, want("looks again", "a"))
		if left := refused(t, p, want("second", "a")); left != time.Second {
			t.Errorf("%s are left of a lease that was forgotten", left)
		}
	})
}

func TestOneLockIsFoundByItsRecordAlone(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{false, true} {
		s := &store{numbered: numbered}
		acquire(t, s.provider(), want("order", "a"))
		acquire(t, s.provider(), want("another", "a"))
		var calls []string
		s.answer = func(call string) error {
			calls = append(calls, call)
			return nil
		}
		for key, wanted := range map[string]int{"order": 1, "none": 0} {
			if found, err := s.provider().Find(t.Context(), lock.Query{Region: "DEFAULT", Key: key, Limit: 10}); err != nil || len(found) != wanted {
				t.Errorf("numbered %t: %s: %+v, %v", numbered, key, found, err)
			}
		}
		if got := fmt.Sprint(calls); got != "[get get]" {
			t.Errorf("numbered %t: calls are %s", numbered, got)
		}
	}
}
