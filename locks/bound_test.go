package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
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

// The earlier end of both counts, by options and by the policies for what each asked for. What
// was released before its end ends nothing.
func TestMaxHoldOfANestedLease(t *testing.T) {
	t.Parallel()
	policies := []locks.Policy{{Name: "readers", Subject: "schema", Predicate: "reading", MaxHold: 10 * time.Minute}}
	schema := locks.Descriptor{Subject: "schema", Predicate: "writing", Resources: []string{"a"}}
	reading := schema
	reading.Predicate = "reading"
	for name, tc := range map[string]struct {
		nested       locks.Descriptor
		outer, inner time.Duration
		released     bool
		want         time.Duration
	}{
		"the nested one's":         {schema, time.Hour, time.Minute, false, 2 * time.Minute},
		"the first one's":          {schema, time.Hour, 2 * time.Hour, false, time.Hour},
		"of a policy":              {reading, time.Hour, 0, false, 11 * time.Minute},
		"one that is released":     {reading, time.Hour, time.Minute, true, time.Hour},
		"without one of the first": {reading, 0, 0, false, 11 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, locks.Options{Policies: policies}, func(t *testing.T, m *locks.Manager) {
				l, err := m.Acquire(t.Context(), schema, locks.MaxHold(tc.outer))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				nested, err := m.Acquire(l.Context(), tc.nested, locks.MaxHold(tc.inner))
				if err != nil {
					t.Fatal(err)
				}
				if tc.released {
					release(t, nested)
				}
				if d := heldFor(t, l) + time.Minute; d != tc.want {
					t.Errorf("held for %s, want %s", d, tc.want)
				}
				for _, l := range []*locks.Lease{nested, l} {
					if err := l.Release(t.Context()); !errors.Is(err, locks.ErrHeldTooLong) && (l != nested || !tc.released) {
						t.Errorf("release: %v, want ErrHeldTooLong", err)
					}
				}
			})
		})
	}
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
	for field, option := range map[string]locks.Option{"max-hold": locks.MaxHold(-1), "hold-at-least": locks.HoldAtLeast(-1)} {
		_, err := m.Acquire(t.Context(), audit, option)
		var mistake *locks.DescriptorError
		if !errors.As(err, &mistake) || mistake.Field != field || p.Attempts(audit.Key()) != 0 {
			t.Errorf("%s: %v", field, err)
		}
	}
	m, err := locks.Open(t.Context(), locks.Options{Provider: &simple{p}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Acquire(t.Context(), audit, locks.HoldAtLeast(time.Minute)); !errors.Is(err, locks.ErrUnsupported) || p.Attempts(audit.Key()) != 0 {
		t.Errorf("a provider that cannot: %v, want ErrUnsupported", err)
	}
	release(t, acquire(t, m, t.Context(), audit))
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// simple is a provider with nothing but the contract.
type simple struct{ lock.Provider }

func (simple) Capabilities() locks.Capabilities { return locks.Capabilities{Name: "simple"} }

func TestLockIsHeldAtLeast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lock    locks.Descriptor
		options []locks.Option
		works   time.Duration // how long it is held
		want    time.Duration // until it is free
	}{
		"released sooner":     {audit, []locks.Option{locks.HoldAtLeast(10 * time.Minute)}, time.Second, 10 * time.Minute},
		"released later":      {audit, []locks.Option{locks.HoldAtLeast(time.Minute)}, time.Hour, time.Hour},
		"at the same moment":  {audit, []locks.Option{locks.HoldAtLeast(time.Minute)}, time.Minute, time.Minute},
		"without a bound":     {audit, nil, time.Second, time.Second},
		"with what is above":  {page, []locks.Option{locks.HoldAtLeast(10 * time.Minute), locks.WithIntents()}, time.Second, 10 * time.Minute},
		"held for too long":   {audit, []locks.Option{locks.HoldAtLeast(time.Hour), locks.MaxHold(time.Minute)}, time.Minute, time.Hour},
		"for less than a TTL": {audit, []locks.Option{locks.HoldAtLeast(2 * time.Second)}, time.Second, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, locks.Options{}, func(t *testing.T, m *locks.Manager) {
				l, err := m.Acquire(t.Context(), c.lock, c.options...)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.works)
				synctest.Wait()
				if err := l.Release(t.Context()); err != nil && !errors.Is(err, locks.ErrHeldTooLong) {
					t.Errorf("release: %v", err)
				}
				wants := []locks.Descriptor{c.lock, fileset}
				if c.lock.Subject != "page" {
					wants = wants[:1]
				}
				if left := c.want - c.works; left > 0 {
					time.Sleep(left - time.Millisecond)
					areHeld(t, m, wants, true)
					time.Sleep(time.Millisecond)
				}
				areHeld(t, m, wants, false)
			})
		})
	}
}

func areHeld(t *testing.T, m *locks.Manager, ds []locks.Descriptor, want bool) {
	t.Helper()
	for _, d := range ds {
		if got := isHeld(t, m, d); got != want {
			t.Errorf("%s is held: %t, want %t", d, got, want)
		}
	}
}

func TestLockIsHeldAtLeastAfterTheManager(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &locktest.Memory{}
		managers := make([]*locks.Manager, 2)
		for i := range managers {
			var err error
			if managers[i], err = locks.Open(t.Context(), locks.Options{Provider: p}); err != nil {
				t.Fatal(err)
			}
		}
		l, err := managers[0].Acquire(t.Context(), audit, locks.HoldAtLeast(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		// The first one's bound is that of the lease.
		if _, err := managers[0].Acquire(l.Context(), audit, locks.HoldAtLeast(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := managers[0].Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Millisecond)
		if !isHeld(t, managers[1], audit) {
			t.Error("the lock is free too soon")
		}
		time.Sleep(time.Millisecond)
		if isHeld(t, managers[1], audit) {
			t.Error("the lock is held for too long")
		}
		if err := managers[1].Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
