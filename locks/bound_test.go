package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

// bubble runs a story with a manager in fake time.
func bubble(t *testing.T, o locks.Options, story func(t *testing.T, m *locks.Manager)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Provider = &locktest.Memory{}
		m, err := locks.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		story(t, m)
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// heldFor returns how long the context of the lease lasts, which ends for being held too
// long.
func heldFor(t *testing.T, l *locks.Lease) time.Duration {
	t.Helper()
	began := time.Now()
	<-l.Context().Done()
	if cause := context.Cause(l.Context()); !errors.Is(cause, locks.ErrHeldTooLong) || !errors.Is(cause, locks.ErrLost) {
		t.Errorf("the lease ended because of %v", cause)
	}
	return time.Since(began)
}

func TestMaxHoldIsTheShortestBound(t *testing.T) {
	t.Parallel()
	policies := []locks.Policy{{Name: "filesets", Subject: "fileset", MaxHold: 20 * time.Minute}, {Name: "all", MaxHold: time.Hour}}
	for name, c := range map[string]struct {
		lock    locks.Descriptor
		options []locks.Option
		want    time.Duration
	}{
		"of a policy":                {fileset, nil, 20 * time.Minute},
		"of a policy for all":        {audit, nil, time.Hour},
		"of the caller":              {audit, []locks.Option{locks.MaxHold(time.Minute)}, time.Minute},
		"longer than the policy's":   {audit, []locks.Option{locks.MaxHold(2 * time.Hour)}, time.Hour},
		"of what is above the lock":  {page, []locks.Option{locks.WithIntents()}, 20 * time.Minute},
		"of none that counts is for": {page, []locks.Option{locks.MaxHold(0)}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, locks.Options{Policies: policies}, func(t *testing.T, m *locks.Manager) {
				l, err := m.Acquire(t.Context(), c.lock, c.options...)
				if err != nil {
					t.Fatal(err)
				}
				if d := heldFor(t, l); d != c.want {
					t.Errorf("held for %s, want %s", d, c.want)
				}
				if !isHeld(t, m, c.lock) {
					t.Error("the lock is free while the worker has not stopped")
				}
				if err := l.Release(t.Context()); !errors.Is(err, locks.ErrHeldTooLong) {
					t.Errorf("release: %v, want ErrHeldTooLong", err)
				}
				if isHeld(t, m, c.lock) {
					t.Error("the lock is held after its release")
				}
			})
		})
	}
}

// A set is one work: the bound of one lock ends all.
func TestMaxHoldOfASet(t *testing.T) {
	t.Parallel()
	bubble(t, locks.Options{Policies: []locks.Policy{{Name: "filesets", Subject: "fileset", MaxHold: time.Minute}}}, func(t *testing.T, m *locks.Manager) {
		set, err := m.AcquireAll(t.Context(), []locks.Descriptor{audit, fileset})
		if err != nil {
			t.Fatal(err)
		}
		if d := heldFor(t, set[0]); d != time.Minute {
			t.Errorf("held for %s", d)
		}
		time.Sleep(2 * locks.DefaultTTL)
		if isHeld(t, m, audit) || isHeld(t, m, fileset) {
			t.Error("a lock of the set is renewed after its end")
		}
		_ = set.Release(t.Context())
	})
}

func TestMaxHoldOfANestedLeaseIsTheFirstOnes(t *testing.T) {
	t.Parallel()
	bubble(t, locks.Options{}, func(t *testing.T, m *locks.Manager) {
		l, err := m.Acquire(t.Context(), audit, locks.MaxHold(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		nested, err := m.Acquire(l.Context(), audit, locks.MaxHold(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if d := heldFor(t, nested); d != time.Hour {
			t.Errorf("held for %s", d)
		}
		for _, l := range []*locks.Lease{nested, l} {
			if err := l.Release(t.Context()); !errors.Is(err, locks.ErrHeldTooLong) {
				t.Errorf("release: %v, want ErrHeldTooLong", err)
			}
		}
	})
}

func TestDoSaysThatALockWasHeldTooLong(t *testing.T) {
	t.Parallel()
	bubble(t, locks.Options{}, func(t *testing.T, m *locks.Manager) {
		stuck := func(ctx context.Context, _ *locks.Lease) error {
			<-ctx.Done()
			return nil
		}
		if err := m.Do(t.Context(), audit, stuck, locks.MaxHold(time.Minute)); !errors.Is(err, locks.ErrHeldTooLong) {
			t.Errorf("%v, want ErrHeldTooLong", err)
		}
	})
}

func TestBoundsThatCannotBe(t *testing.T) {
	t.Parallel()
	m, p := open(t, locks.Options{})
	_, err := m.Acquire(t.Context(), audit, locks.MaxHold(-1))
	var mistake *locks.DescriptorError
	if !errors.As(err, &mistake) || mistake.Field != "max-hold" || p.Attempts(audit.Key()) != 0 {
		t.Errorf("%v", err)
	}
}
