package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/locks"
)

// A caller that holds a page already takes it again, with intents that it does not hold.
func TestNestedLeaseWithNewIntents(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	page := below(fileset, "page", "7")
	outer := acquire(t, m, t.Context(), page)
	l, err := m.Acquire(outer.Context(), page, locks.WithIntents(), locks.FailFast())
	if err != nil {
		t.Fatal(err)
	}
	if l.Term() != outer.Term() || l.Fence() != outer.Fence() || l.Descriptor().Subject != "page" {
		t.Errorf("the lease is of %s, with the fence %d, and not of the page, with %d", l.Descriptor(), l.Fence(), outer.Fence())
	}
	// Its context is one of the intent too.
	intent := in(fileset, locks.Intent)
	inner, err := m.Acquire(l.Context(), intent, locks.FailFast())
	if err != nil {
		t.Fatal(err)
	}
	var wrong *locks.NestedError
	if _, err := m.Acquire(l.Context(), fileset, locks.FailFast()); !errors.As(err, &wrong) {
		t.Errorf("%v, want a NestedError", err)
	}
	release(t, inner)
	release(t, l)
	if isHeld(t, m, fileset) {
		t.Error("the intent is held after the release")
	}
	release(t, outer)
}

// Of several locks, some may be the caller's own.
func TestSetWithNestedLeasesKeepsItsOrder(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	ds := []locks.Descriptor{below(fileset, "page", "1"), below(fileset, "page", "2"), below(fileset, "page", "3")}
	outer := acquire(t, m, t.Context(), ds[1])
	all, err := m.AcquireAll(outer.Context(), ds, locks.FailFast())
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range all {
		if l.Descriptor().Key() != ds[i].Key() {
			t.Errorf("lease %d is of %s", i, l.Descriptor())
		}
	}
	if all[1].Context().Err() != nil {
		t.Fatal("the context of a held lock has ended")
	}
	if again, err := m.Acquire(all[1].Context(), ds[0], locks.FailFast()); err != nil {
		t.Errorf("a caller with the context of one does not hold another: %v", err)
	} else {
		release(t, again)
	}
	release(t, all[0])
	release(t, all[2])
	if err := all[1].Context().Err(); err != nil {
		t.Errorf("the release of others has ended the context: %v", err)
	}
	release(t, all[1])
	release(t, outer)
}

func TestLossOfOneEndsNestedLeasesOfTheSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		outer := acquire(t, m, t.Context(), audit)
		all, err := m.AcquireAll(outer.Context(), []locks.Descriptor{page, audit}, locks.FailFast())
		if err != nil {
			t.Fatal(err)
		}
		r, _ := p.Holder(requestOf(all[0]))
		p.Expire(r)
		<-all[1].Context().Done()
		if cause := context.Cause(all[1].Context()); !errors.Is(cause, locks.ErrLost) {
			t.Errorf("context ended because of %v", cause)
		}
		if outer.Context().Err() != nil {
			t.Error("the lease outside has ended too")
		}
		release(t, all[1])
		release(t, outer)
		if err := all[0].Release(t.Context()); !errors.Is(err, locks.ErrLost) {
			t.Errorf("release: %v", err)
		}
	})
}

// A nested lease is forgotten, and its context has ended when the outer one is released.
func TestForgottenNestedLeaseIsNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		outer := acquire(t, m, t.Context(), page)
		ctx, cancel := context.WithTimeout(outer.Context(), time.Second)
		defer cancel()
		_ = acquire(t, m, ctx, page)
		time.Sleep(2 * time.Second)
		release(t, outer)
		time.Sleep(time.Hour)
		if isHeld(t, process(t, p), page) {
			t.Error("an hour later the lock is held")
		}
	})
}
