package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/locks"
)

// in returns the descriptor in another mode.
func in(d locks.Descriptor, mode locks.Mode) locks.Descriptor {
	d.Mode = mode
	return d
}

func below(d locks.Descriptor, subject string, resources ...string) locks.Descriptor {
	d.Subject, d.Resources = subject, append(append([]string{}, d.Resources...), resources...)
	return d
}

func TestReadersAndAWriter(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	writing := locks.Descriptor{Subject: "schema", Predicate: "writing", Resources: []string{"tenant-123", "VA-IRRL-LIN"}, TTL: 30 * time.Second}
	reading := locks.Descriptor{Subject: "schema", Predicate: "reading", Resources: writing.Resources, Mode: locks.Shared, TTL: 5 * time.Second}
	first, second := acquire(t, m, t.Context(), reading), acquire(t, m, t.Context(), reading)
	release(t, first)
	if !isHeld(t, m, writing) {
		t.Error("the writer got in beside a reader")
	}
	release(t, second)
	writer := acquire(t, m, t.Context(), writing)
	if !isHeld(t, m, reading) {
		t.Error("a reader got in beside the writer")
	}
	release(t, writer)
}

// A page is written below a fileset on which somebody works, and keeps out whoever wants
// the whole fileset.
func TestIntentsAbove(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	signal := acquire(t, m, t.Context(), in(fileset, locks.Intent))
	page := below(fileset, "page", "7")
	l, err := m.Acquire(t.Context(), page, locks.WithIntents())
	if err != nil {
		t.Fatal(err)
	}
	release(t, signal)
	if l.Descriptor().Subject != "page" {
		t.Errorf("the lease is of %s", l.Descriptor())
	}
	for mode, free := range map[locks.Mode]bool{locks.Exclusive: false, locks.Shared: false, locks.Intent: true, locks.IntentExclusive: true} {
		if held := isHeld(t, m, in(fileset, mode)); held == free {
			t.Errorf("%s of the fileset: held %t", mode, held)
		}
	}
	// To its holder the intent is its own.
	nested, err := m.Acquire(l.Context(), in(fileset, locks.IntentExclusive), locks.FailFast())
	if err != nil {
		t.Fatal(err)
	}
	var wrong *locks.NestedError
	if _, err := m.Acquire(l.Context(), fileset, locks.FailFast()); !errors.As(err, &wrong) {
		t.Errorf("%v, want a NestedError", err)
	}
	release(t, nested)
	release(t, l)
	for _, d := range []locks.Descriptor{fileset, page} {
		if isHeld(t, m, d) {
			t.Errorf("%s is held after the release", d)
		}
	}
}

func TestIntentsOfReaders(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	reader, err := m.Acquire(t.Context(), in(below(fileset, "page", "doc-2", "3"), locks.Shared), locks.WithIntents())
	if err != nil {
		t.Fatal(err)
	}
	release(t, acquire(t, m, t.Context(), in(fileset, locks.Shared)))
	for _, d := range []locks.Descriptor{fileset, below(fileset, "document", "doc-2"), in(below(fileset, "page", "doc-2", "3"), locks.IntentExclusive)} {
		if !isHeld(t, m, d) {
			t.Errorf("%s is free beside a reader of a page", d)
		}
	}
	release(t, reader)
}

func TestSetsAreTakenAsAWhole(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	held := acquire(t, m, t.Context(), audit)
	var refused *locks.HeldError
	if _, err := m.AcquireAll(t.Context(), []locks.Descriptor{fileset, audit}, locks.FailFast()); !errors.As(err, &refused) || refused.Lock.Subject != "audit" {
		t.Errorf("%v", err)
	}
	if isHeld(t, m, fileset) {
		t.Error("half of a set is held")
	}
	// What the caller has already is not asked for again.
	set, err := m.AcquireAll(held.Context(), []locks.Descriptor{fileset, audit}, locks.FailFast())
	if err != nil || len(set) != 2 {
		t.Fatalf("%v, %v", set, err)
	}
	release(t, held)
	if !isHeld(t, m, audit) {
		t.Error("the nested lease of the set does not hold")
	}
	if err := set.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if isHeld(t, m, audit) || isHeld(t, m, fileset) {
		t.Error("held after the release")
	}
}

func TestLossOfOneEndsTheSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := open(t, locks.Options{})
		set, err := m.AcquireAll(t.Context(), []locks.Descriptor{fileset, audit, page})
		if err != nil {
			t.Fatal(err)
		}
		release(t, set[2])
		synctest.Wait()
		if set[0].Context().Err() != nil {
			t.Error("the release of one lock has ended the others")
		}
		for _, l := range set[:2] {
			if l.Descriptor().Subject == "audit" {
				p.ExpireTerm(l.Term())
			}
		}
		<-set[0].Context().Done()
		if cause := context.Cause(set[0].Context()); !errors.Is(cause, locks.ErrLost) {
			t.Errorf("cause %v, want ErrLost", cause)
		}
		if err := set.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
	})
}

// The intents of a set belong to its leases. One that two pages have in common is held until
// the second is released, and so is a fileset that was asked for beside its page.
func TestIntentsOfASet(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	pages := []locks.Descriptor{below(fileset, "page", "1"), below(fileset, "page", "2")}
	for name, ds := range map[string][]locks.Descriptor{"an intent": pages, "a lock of the set": {pages[0], fileset}} {
		set, err := m.AcquireAll(t.Context(), ds, locks.WithIntents(), locks.FailFast())
		if err != nil || len(set) != len(ds) {
			t.Fatalf("%s: %d leases, %v", name, len(set), err)
		}
		for i, l := range set {
			if l.Descriptor().Key() != ds[i].Key() {
				t.Errorf("%s: lease %d is of %s", name, i, l.Descriptor())
			}
		}
		if err := set[0].Extend(t.Context(), time.Hour); err != nil {
			t.Errorf("%s: the extension of one page: %v", name, err)
		}
		release(t, set[1])
		if !isHeld(t, m, in(fileset, locks.Shared)) {
			t.Errorf("%s: the fileset is free while one of its pages is held", name)
		}
		if set[0].Context().Err() != nil {
			t.Errorf("%s: the context of the other has ended", name)
		}
		release(t, set[0])
		if isHeld(t, m, fileset) {
			t.Errorf("%s: the fileset is held after the release", name)
		}
	}
}

func TestSetsThatCannotBe(t *testing.T) {
	t.Parallel()
	m, p := open(t, locks.Options{})
	for name, tc := range map[string]struct {
		ds     []locks.Descriptor
		option locks.Option
		says   string
	}{
		"twice":          {[]locks.Descriptor{fileset, in(fileset, locks.Shared)}, locks.FailFast(), "leave one out"},
		"no hierarchy":   {[]locks.Descriptor{audit}, locks.WithIntents(), "is in no hierarchy"},
		"too deep":       {[]locks.Descriptor{below(fileset, "page", "a", "b", "c")}, locks.WithIntents(), "place 4"},
		"weaker above":   {[]locks.Descriptor{in(fileset, locks.Shared), below(fileset, "page", "7")}, locks.WithIntents(), "needs intent-exclusive"},
		"wrong resource": {[]locks.Descriptor{below(fileset, "page", "")}, locks.WithIntents(), "must name something"},
		"empty":          {nil, locks.FailFast(), "locks are missing"},
		"no option":      {[]locks.Descriptor{fileset}, nil, "options have nothing as number 1"},
	} {
		_, err := m.AcquireAll(t.Context(), tc.ds, tc.option)
		var mistake *locks.DescriptorError
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
	if n := p.Attempts(fileset.Key()); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}

func TestHierarchiesThatContradictEachOther(t *testing.T) {
	t.Parallel()
	for want, own := range map[string][][]string{
		"locks: Options.Hierarchies[0]: hierarchy page > fileset: page is above fileset here, and below it by fileset > page; use fileset > page, or leave": {{"page", "fileset"}},
		"Hierarchies[0]: hierarchy page > schema > document: page is above document here, and below it by document > page; use document > page,":            {{"page", "schema", "document"}},
		"Hierarchies[1]: hierarchy audit > schema: audit is above schema here, and below it by schema > queue-job > audit; use schema > audit,":             {{"schema", "queue-job", "audit"}, {"audit", "schema"}},
		"Hierarchies[2]: hierarchy audit > schema: audit is above schema here, and below it by schema > queue-job > audit; use":                             {{"schema", "queue-job"}, {"queue-job", "audit"}, {"audit", "schema"}},
	} {
		_, err := locks.Open(t.Context(), locks.Options{Provider: &exclusive{}, Hierarchies: own})
		var contradiction *locks.HierarchyError
		if !errors.As(err, &contradiction) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", own, err, want)
		}
	}
	// The same order in several hierarchies is none.
	if _, err := locks.NewRules(locks.Options{Hierarchies: [][]string{{"fileset", "schema", "audit", "page"}, {"schema", "audit"}, {"fileset", "page"}}}); err != nil {
		t.Error(err)
	}
}

func TestHierarchiesThatCannotBe(t *testing.T) {
	t.Parallel()
	for says, h := range map[string][]string{
		"less than two":     {"fileset"},
		"is not known":      {"fileset", "pge"},
		"below itself":      {"audit", "schema", "audit"},
		"is also below":     {"schema", "page"},
		"document > page a": {"queue-job", "document", "page"},
	} {
		_, err := locks.Open(t.Context(), locks.Options{Provider: &exclusive{}, Hierarchies: [][]string{h}})
		var contradiction *locks.HierarchyError
		var mistake *locks.DescriptorError
		if !errors.As(err, &contradiction) && !errors.As(err, &mistake) || !strings.Contains(err.Error(), says) && !strings.Contains(err.Error(), "is also below") {
			t.Errorf("%v: %v, want %q", h, err, says)
		}
	}
	m, _ := open(t, locks.Options{Subjects: []string{"tenant"}, Hierarchies: [][]string{{"tenant", "schema"}}})
	l, err := m.Acquire(t.Context(), locks.Descriptor{Subject: "schema", Predicate: "writing", Resources: []string{"t-1", "s"}}, locks.WithIntents())
	if err != nil {
		t.Fatal(err)
	}
	if !isHeld(t, m, locks.Descriptor{Subject: "tenant", Predicate: "writing", Resources: []string{"t-1"}}) {
		t.Error("the tenant has no intent")
	}
	release(t, l)
}

// TestHierarchyKeepsConflictsOut compares with a model that knows no intents: a lock on a
// node of the tree is one on all that is below it.
func TestHierarchyKeepsConflictsOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m, _ := open(t, locks.Options{})
		var held []*locks.Lease
		defer func() {
			for _, l := range held {
				if err := l.Release(t.Context()); err != nil {
					rt.Error(err)
				}
			}
		}()
		for range 12 {
			d := node(rt)
			l, err := m.Acquire(t.Context(), d, locks.WithIntents(), locks.FailFast())
			if err != nil && !errors.Is(err, locks.ErrHeld) {
				rt.Fatal(err)
			}
			for _, other := range held {
				if err == nil && clash(d, other.Descriptor()) {
					rt.Errorf("%s beside %s", d, other.Descriptor())
				}
			}
			if err == nil {
				held = append(held, l)
			} else if !anyClash(d, held) {
				rt.Errorf("%s was refused beside %d locks that have nothing to do with it", d, len(held))
			}
		}
	})
}

func node(rt *rapid.T) locks.Descriptor {
	path := []string{"fs", rapid.SampledFrom([]string{"d1", "d2"}).Draw(rt, "document"), rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "page")}
	depth := rapid.IntRange(1, 3).Draw(rt, "depth")
	return locks.Descriptor{
		Subject: []string{"fileset", "document", "page"}[depth-1], Predicate: "processing", Resources: path[:depth],
		Mode: rapid.SampledFrom([]locks.Mode{locks.Exclusive, locks.Shared}).Draw(rt, "mode"),
	}
}

// clash reports whether two locks are of one branch and do not go together.
func clash(a, b locks.Descriptor) bool {
	for i := range min(len(a.Resources), len(b.Resources)) {
		if a.Resources[i] != b.Resources[i] {
			return false
		}
	}
	return a.Mode != locks.Shared || b.Mode != locks.Shared
}

func anyClash(d locks.Descriptor, held []*locks.Lease) bool {
	for _, l := range held {
		if clash(d, l.Descriptor()) {
			return true
		}
	}
	return false
}
