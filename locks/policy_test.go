package locks_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

var invoice = locks.Descriptor{Subject: "invoice", Predicate: "processing", Resources: []string{"1"}, TTL: time.Minute}

func TestPoliciesRefuseBeforeTheProviderIsAsked(t *testing.T) {
	t.Parallel()
	m, p := open(t, locks.Options{Subjects: []string{"invoice"}, Policies: []locks.Policy{
		{Name: "invoices", Subject: "invoice", MinTTL: 10 * time.Second, MaxTTL: time.Hour, Metadata: []string{"purpose"}, Reason: "Invoices are audited"},
		{Name: "readers", Predicate: "reading", Mode: locks.Shared, MaxTTL: time.Minute},
		{Name: "one-schema", Subject: "schema", Predicate: "writing", PerNode: 1},
	}})
	for want, d := range map[string]locks.Descriptor{
		"breaks the policy extraction-ttl: Extraction TTL exceeds 5 minutes (the TTL is 10m0s; use 5m0s or less)": {
			Subject: "page", Predicate: "extracting", TTL: 10 * time.Minute},
		"policy extraction-ttl: the TTL is missing; set one of at most 5m0s":                          {Subject: "page", Predicate: "extracting"},
		"policy exclusive-audits: Audits require exclusive locks (the mode is shared; use exclusive)": {Subject: "audit", Predicate: "reading", Mode: locks.Shared},
		"policy invoices: Invoices are audited (the TTL is 1s; use 10s or more)":                      {Subject: "invoice", Predicate: "processing", TTL: time.Second},
		"policy invoices: Invoices are audited (the metadata purpose is missing; set it)":             {Subject: "invoice", Predicate: "processing", Metadata: map[string]string{"scope": "x"}},
		"lock:shared:schema:reading:a breaks the policy readers: the TTL is 2m0s; use 1m0s or less":   {Subject: "schema", Predicate: "reading", Mode: locks.Shared, TTL: 2 * time.Minute},
	} {
		d.Resources = []string{"a"}
		_, err := m.Acquire(t.Context(), d)
		var refused *locks.PolicyError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if n := p.Attempts(d.Key()); n != 0 {
			t.Errorf("%s: the provider was asked %d times", d, n)
		}
	}
	for _, blank := range []string{" ", "\u00a0", "\u200b", "\ufeff \u3164"} {
		d := invoice
		d.Metadata = map[string]string{"purpose": blank}
		var refused *locks.PolicyError
		if _, err := m.Acquire(t.Context(), d); !errors.As(err, &refused) || refused.Rule != "invoices" {
			t.Errorf("the purpose %q: %v", blank, err)
		}
	}
	good := invoice
	good.Metadata = map[string]string{"purpose": "test"}
	release(t, acquire(t, m, t.Context(), good))
	release(t, acquire(t, m, t.Context(), locks.Descriptor{Subject: "page", Predicate: "extracting", Resources: []string{"a"}, TTL: 5 * time.Minute}))
}

func TestPoliciesHoldForExtensions(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	l := acquire(t, m, t.Context(), locks.Descriptor{Subject: "page", Predicate: "extracting", Resources: []string{"a"}, TTL: time.Minute})
	var refused *locks.PolicyError
	if err := l.Extend(t.Context(), 301*time.Second); !errors.As(err, &refused) || refused.Rule != "extraction-ttl" || l.TTL() != time.Minute {
		t.Errorf("extended past the policy: %v, the TTL is %s", err, l.TTL())
	}
	if err := l.Extend(t.Context(), 5*time.Minute); err != nil || l.TTL() != 5*time.Minute {
		t.Errorf("extended to what may be: %v, the TTL is %s", err, l.TTL())
	}
	release(t, l)
}

// Whoever holds a lock and asks for it again as something else keeps the policies of both.
func TestPoliciesOfNestedLeases(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{Policies: []locks.Policy{{Name: "long", Subject: "page", Predicate: "validating", MinTTL: time.Hour}}})
	long, extracting, validating := page, page, page
	long.Predicate, long.TTL = "processing", 10*time.Minute
	validating.Predicate, validating.TTL = "validating", time.Hour
	outer := acquire(t, m, t.Context(), long)
	for want, d := range map[string]locks.Descriptor{
		"extraction-ttl: the caller holds the lock already, with a TTL of its own: Extraction TTL exceeds 5 minutes (the TTL is 10m0s; use 5m0s or less)": extracting,
		"long: the caller holds the lock already, with a TTL of its own: the TTL is 10m0s; use 1h0m0s or more":                                            validating,
	} {
		var refused *locks.PolicyError
		if _, err := m.Acquire(outer.Context(), d); !errors.As(err, &refused) || refused.Rule+": "+refused.Reason != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := outer.Extend(t.Context(), 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	nested := acquire(t, m, outer.Context(), extracting)
	for _, l := range []*locks.Lease{outer, nested} {
		var refused *locks.PolicyError
		if err := l.Extend(t.Context(), 10*time.Minute); !errors.As(err, &refused) || refused.Rule != "extraction-ttl" || l.TTL() != 5*time.Minute {
			t.Errorf("extended to %s while a page is extracted: %v", l.TTL(), err)
		}
	}
	release(t, nested)
	if err := outer.Extend(t.Context(), 10*time.Minute); err != nil {
		t.Errorf("extension after the extraction: %v", err)
	}
	release(t, outer)
}

func TestPolicyLimitsTheLocksOfAProcess(t *testing.T) {
	t.Parallel()
	m, p := open(t, locks.Options{Policies: []locks.Policy{{Name: "two", Subject: "schema", PerNode: 2}}})
	of := func(name string) locks.Descriptor {
		return locks.Descriptor{Subject: "schema", Predicate: "writing", Resources: []string{name}}
	}
	first, second := acquire(t, m, t.Context(), of("a")), acquire(t, m, t.Context(), of("b"))
	nested := acquire(t, m, first.Context(), of("a")) // It is the same lock.
	full := func() bool {
		t.Helper()
		l, err := m.Acquire(t.Context(), of("c"), locks.FailFast())
		var refused *locks.PolicyError
		if err == nil {
			release(t, l)
		} else if !errors.As(err, &refused) || refused.Rule != "two" {
			t.Fatal(err)
		}
		return err != nil
	}
	if !full() || p.Attempts("schema:c") != 0 {
		t.Error("a third lock was taken")
	}
	release(t, first)
	if !full() {
		t.Error("the lock of a nested lease does not count")
	}
	release(t, nested)
	if full() {
		t.Error("a released lock counts")
	}
	if _, err := m.Acquire(t.Context(), of("b"), locks.FailFast()); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("%v, want ErrHeld", err)
	}
	if full() {
		t.Error("a lock that was not to be had counts")
	}
	release(t, second)
}

func TestPoliciesThatContradictEachOther(t *testing.T) {
	t.Parallel()
	for want, policies := range map[string][]locks.Policy{
		"it has no name":                                                                                              {{Subject: "page"}},
		`subject "pages" is not known; use page`:                                                                      {{Name: "a", Subject: "pages"}},
		`predicate "read" is not known`:                                                                               {{Name: "a", Predicate: "read"}},
		`modes "share" is unknown; use shared`:                                                                        {{Name: "a", Modes: []locks.Mode{"share"}}},
		"policy a: steal-by has nobody and names of nodes":                                                            {{Name: "a", StealBy: []string{locks.Nobody, "ops-1"}}},
		"policy a: a node that may steal has no name":                                                                 {{Name: "a", StealBy: []string{""}}},
		"policy a: a bound is negative":                                                                               {{Name: "a", MaxTTL: -1}},
		"policy a: the least TTL 2s is longer than the greatest, 1s":                                                  {{Name: "a", MinTTL: 2 * time.Second, MaxTTL: time.Second}},
		"policy a: it is for locks in mode shared, and does not allow that mode":                                      {{Name: "a", Mode: locks.Shared, Modes: []locks.Mode{locks.Exclusive}}},
		"policy a and b: the least TTL of one, 2m0s, is longer than the greatest of the other, 1m0s":                  {{Name: "a", MaxTTL: time.Minute}, {Name: "b", Subject: "fileset", MinTTL: 2 * time.Minute}},
		"policy a and a: they have one name":                                                                          {{Name: "a", Subject: "page"}, {Name: "a", Subject: "fileset"}},
		"policy exclusive-audits and b: there is no mode that both allow":                                             {{Name: "b", Subject: "audit", Modes: []locks.Mode{locks.Shared}}},
		"policy extraction-ttl and long: the least TTL of one, 10m0s, is longer than the greatest of the other, 5m0s": {{Name: "long", Subject: "page", MinTTL: 10 * time.Minute}},
	} {
		_, err := locks.Open(t.Context(), locks.Options{Provider: &locktest.Memory{}, Policies: policies})
		var descriptor *locks.DescriptorError
		var conflict *locks.PolicyConflictError
		if !errors.As(err, &descriptor) && !errors.As(err, &conflict) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// These are for different locks, or replace a default one.
	m, _ := open(t, locks.Options{Policies: []locks.Policy{
		{Name: "a", Subject: "fileset", MaxTTL: time.Minute}, {Name: "b", Subject: "document", MinTTL: 2 * time.Minute},
		{Name: "extraction-ttl", Subject: "page", MinTTL: 10 * time.Minute},
	}})
	release(t, acquire(t, m, t.Context(), locks.Descriptor{Subject: "page", Predicate: "extracting", Resources: []string{"a"}, TTL: time.Hour}))
}

func TestRulesCheckWithoutAProvider(t *testing.T) {
	t.Parallel()
	rules, err := locks.NewRules(locks.Options{Subjects: []string{"invoice"}, Policies: []locks.Policy{
		{Name: "exclusive-audits", Subject: "audit", MaxTTL: time.Hour}, {Name: "invoices", Subject: "invoice", ExplicitTTL: true}}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range rules.Policies() {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "extraction-ttl exclusive-audits invoices" {
		t.Errorf("policies %s", got)
	}
	if err := rules.Check(invoice); err != nil {
		t.Error(err)
	}
	bare := invoice
	bare.TTL = 0
	var refused *locks.PolicyError
	if err := rules.Check(bare); !errors.As(err, &refused) || refused.Rule != "invoices" {
		t.Errorf("without a TTL: %v", err)
	}
	var mistake *locks.DescriptorError
	if err := rules.Check(locks.Descriptor{Subject: "pages", Predicate: "reading", Resources: []string{"a"}}); !errors.As(err, &mistake) {
		t.Errorf("unknown subject: %v", err)
	}
	_, err = locks.NewRules(locks.Options{Policies: []locks.Policy{{Name: "a"}, {Name: "b", PerNode: -1}}})
	var where *locks.OptionError
	if !errors.As(err, &where) || where.Option != "Policies" || where.Index != 1 {
		t.Errorf("the second policy is wrong: %v", err)
	}
}
