package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

// find returns the lock as the lease holds it.
func find(t *testing.T, m *locks.Manager, l *locks.Lease) locks.Found {
	t.Helper()
	found, err := m.Find(t.Context(), locks.Filter{Subject: l.Descriptor().Subject})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Term == l.Term() {
			return f
		}
	}
	t.Fatalf("%s is not found", l.Descriptor())
	return locks.Found{}
}

func TestStolenLockIsKeptByTheThief(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		p := &locktest.Memory{}
		m, err := locks.Open(t.Context(), locks.Options{Provider: p, Node: "b", Registerer: reg})
		if err != nil {
			t.Fatal(err)
		}
		a := process(t, p)
		victim := acquire(t, a, t.Context(), page)
		wanted := page
		wanted.Predicate, wanted.TTL, wanted.Metadata = "validating", time.Minute, map[string]string{"purpose": "repair"}
		l, err := m.Steal(t.Context(), find(t, m, victim), wanted)
		if err != nil {
			t.Fatal(err)
		}
		if l.Fence() <= victim.Fence() || l.Term() == victim.Term() || l.TTL() != time.Minute || l.Descriptor().String() != wanted.String() {
			t.Errorf("lease of %s, fence %d after %d", l.Descriptor(), l.Fence(), victim.Fence())
		}
		if f := find(t, m, l); f.Node != "b" || f.Lock.Metadata["purpose"] != "repair" {
			t.Errorf("found %+v", f)
		}
		if victim.Context().Err() != nil {
			t.Error("the holder knows of the theft before it asks")
		}
		time.Sleep(page.TTL / 3)
		synctest.Wait()
		if cause := context.Cause(victim.Context()); !errors.Is(cause, locks.ErrLost) {
			t.Errorf("after a third of the TTL the context of the former holder has ended with %v", cause)
		}
		if err := victim.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
			t.Errorf("release of the former holder: %v", err)
		}
		time.Sleep(time.Hour) // It is renewed.
		if l.Context().Err() != nil || !isHeld(t, a, page) {
			t.Errorf("the lease of the thief has ended: %v", context.Cause(l.Context()))
		}
		_, err = m.Steal(t.Context(), locks.Found{Lock: page, Term: victim.Term()}, page)
		if !errors.Is(err, locks.ErrEnded) || !errors.Is(err, locks.ErrLost) {
			t.Errorf("steal from a term that has ended: %v", err)
		}
		release(t, l)
		want := `
# HELP observerd_locks_acquisition_failures_total Calls that did not get the lock: another had it (contention), a policy refused it, the caller's time was over (timeout), or the provider failed (api_error).
# TYPE observerd_locks_acquisition_failures_total counter
observerd_locks_acquisition_failures_total{mode="exclusive",predicate="extracting",provider="memory",reason="contention",subject="page"} 1
# HELP observerd_locks_acquisition_successes_total Calls that got the lock.
# TYPE observerd_locks_acquisition_successes_total counter
observerd_locks_acquisition_successes_total{mode="exclusive",predicate="validating",provider="memory",subject="page"} 1
# HELP observerd_locks_active_count Locks that this process holds.
# TYPE observerd_locks_active_count gauge
observerd_locks_active_count{mode="exclusive",predicate="validating",provider="memory",subject="page"} 0
# HELP observerd_locks_stale_recovered_total Locks that were taken from a holder which did not release them.
# TYPE observerd_locks_stale_recovered_total counter
observerd_locks_stale_recovered_total{mode="exclusive",predicate="validating",provider="memory",subject="page"} 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "observerd_locks_acquisition_failures_total",
			"observerd_locks_acquisition_successes_total", "observerd_locks_active_count", "observerd_locks_stale_recovered_total"); err != nil {
			t.Error(err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// stealing is a provider that notes who steals.
type stealing struct {
	*locktest.Memory
	by lock.By
}

func (s *stealing) Capabilities() locks.Capabilities {
	c := s.Memory.Capabilities()
	c.Stealer = s
	return c
}

func (s *stealing) Steal(ctx context.Context, r lock.Request, seen lock.Held, by lock.By) (lock.Grant, error) {
	s.by = by
	return s.Memory.Steal(ctx, r, seen, by)
}

func TestStealSaysWhoDoesIt(t *testing.T) {
	t.Parallel()
	p := &stealing{Memory: &locktest.Memory{}}
	m, err := locks.Open(t.Context(), locks.Options{Provider: p, Node: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for want, options := range map[lock.By][]locks.StealOption{{Actor: "b"}: nil, {Actor: "alice", Reason: "WMS-4711"}: {locks.StolenBy("alice", "WMS-4711")}} {
		victim := acquire(t, m, t.Context(), audit)
		l, err := m.Steal(t.Context(), find(t, m, victim), audit, options...)
		if err != nil || p.by != want {
			t.Errorf("stolen by %q, want %q: %v", p.by, want, err)
		}
		release(t, l)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStealIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{Node: "b"})
		a := process(t, p)
		shared := in(fileset, locks.Shared)
		first, second := acquire(t, a, t.Context(), shared), acquire(t, a, t.Context(), shared)
		own := acquire(t, m, t.Context(), page)
		seen := find(t, m, first)
		_, err := m.Steal(t.Context(), seen, fileset)
		var held *locks.HeldError
		if !errors.As(err, &held) || held.Lock.String() != fileset.String() || held.Node == "" || held.Tries != 1 {
			t.Errorf("steal from one of two readers: %v: %+v", err, held)
		}
		var wrong *locks.DescriptorError
		if _, err := m.Steal(t.Context(), seen, page); !errors.As(err, &wrong) || wrong.Field != "resources" {
			t.Errorf("steal of another lock: %v", err)
		}
		if _, err := m.Steal(t.Context(), locks.Found{}, page); !errors.As(err, &wrong) {
			t.Errorf("steal of nothing: %v", err)
		}
		if _, err := m.Steal(t.Context(), seen, shared, nil); !errors.As(err, &wrong) || wrong.Field != "options" {
			t.Errorf("steal with an option that is nil: %v", err)
		}
		var nested *locks.NestedError
		if _, err := m.Steal(own.Context(), find(t, m, own), page); !errors.As(err, &nested) {
			t.Errorf("steal from oneself: %v", err)
		}
		p.Fail(errors.New("database is down"))
		if _, err := m.Steal(t.Context(), seen, shared); err == nil || errors.Is(err, locks.ErrHeld) || errors.Is(err, locks.ErrRenewed) || !strings.Contains(err.Error(), "is down") {
			t.Errorf("steal while the database is down: %v", err)
		}
		p.Fail(nil)
		time.Sleep(locks.DefaultTTL) // They are renewed.
		if _, err := m.Steal(t.Context(), seen, shared); !errors.Is(err, locks.ErrRenewed) || !strings.Contains(err.Error(), shared.String()) {
			t.Errorf("steal of what was renewed since: %v", err)
		}
		for _, l := range []*locks.Lease{first, second, own} {
			release(t, l)
		}
		if n := p.Waiting(); n != 0 {
			t.Errorf("%d wait in line", n)
		}
	})
	other, err := locks.Open(t.Context(), locks.Options{Provider: exclusive{&locktest.Memory{}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Steal(t.Context(), locks.Found{Lock: page, Term: "x"}, page); !errors.Is(err, locks.ErrUnsupported) {
		t.Errorf("steal from a provider that cannot: %v", err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPoliciesSayWhoMaySteal(t *testing.T) {
	t.Parallel()
	policies := []locks.Policy{
		{Name: "pages", Subject: "page", StealBy: []string{"ops-1", "ops-2"}, Reason: "Extractions are dear"},
		{Name: "audits", Subject: "audit", StealBy: []string{locks.Nobody}},
		{Name: "writers", Predicate: "writing", StealBy: []string{locks.Nobody}},
	}
	writing := in(fileset, locks.Exclusive)
	writing.Predicate = "writing"
	for name, tc := range map[string]struct {
		node         string
		held, wanted locks.Descriptor
		rule, reason string
	}{
		"a node that is not named":      {"b", page, page, "pages", "Extractions are dear (this node, b, may not steal it; ops-1 or ops-2 may)"},
		"a node that is named":          {"ops-2", page, page, "", ""},
		"nobody":                        {"ops-1", audit, audit, "audits", "nobody may steal it; wait until its lease is over"},
		"a node that is called nobody":  {locks.Nobody, audit, audit, "audits", "nobody may steal it; wait until its lease is over"},
		"of a lock that no rule is for": {"b", fileset, fileset, "", ""},
		"by what is wanted":             {"b", fileset, writing, "writers", "nobody may steal it; wait until its lease is over"},
		"by what is held":               {"b", writing, fileset, "writers", "nobody may steal it; wait until its lease is over"},
		"a lock that may not be":        {"ops-1", page, withTTL(page, time.Hour), "extraction-ttl", "Extraction TTL exceeds 5 minutes (the TTL is 1h0m0s; use 5m0s or less)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, p := open(t, locks.Options{Node: tc.node, Policies: policies})
			victim := acquire(t, m, t.Context(), tc.held)
			seen, before := find(t, m, victim), p.Attempts(tc.held.Key())
			seen.Lock.Predicate, seen.Lock.Mode = "completing", locks.Intent // What counts is what the provider has.
			l, err := m.Steal(t.Context(), seen, tc.wanted)
			if tc.rule == "" {
				if err != nil {
					t.Fatal(err)
				}
				release(t, l)
				return
			}
			var refused *locks.PolicyError
			if !errors.As(err, &refused) || refused.Rule != tc.rule || refused.Reason != tc.reason || refused.Lock.String() != tc.wanted.String() {
				t.Errorf("%v, want that %s refuses it: %s", err, tc.rule, tc.reason)
			}
			if p.Attempts(tc.held.Key()) != before {
				t.Error("the provider was asked")
			}
			release(t, victim)
		})
	}
}

func withTTL(d locks.Descriptor, ttl time.Duration) locks.Descriptor {
	d.TTL = ttl
	return d
}

// HoldAtLeast keeps a stolen lock with no holder, for those who repair something.
func TestStolenLockIsHeldAtLeast(t *testing.T) {
	t.Parallel()
	bubble(t, locks.Options{}, func(t *testing.T, m *locks.Manager) {
		victim := acquire(t, m, t.Context(), fileset)
		l, err := m.Steal(t.Context(), find(t, m, victim), fileset, locks.HoldAtLeast(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		release(t, l)
		time.Sleep(59 * time.Minute)
		if !isHeld(t, m, fileset) {
			t.Error("the lock is free too soon")
		}
		time.Sleep(time.Minute)
		if isHeld(t, m, fileset) {
			t.Error("the lock is held for too long")
		}
		if err := victim.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
			t.Errorf("release of the former holder: %v", err)
		}
	})
}
