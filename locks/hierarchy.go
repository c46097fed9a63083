package locks

import (
	"fmt"
	"slices"
	"strings"
)

// DefaultHierarchies returns the hierarchies that every manager knows.
func DefaultHierarchies() [][]string {
	return [][]string{{"fileset", "document", "page"}, {"fileset", "page"}}
}

// WithIntents takes, with each lock, intents on all that is above it: in the same step, for as
// long as it is held, with its predicate and TTL. They are [Intent] above a lock that is
// shared or an intent itself, and [IntentExclusive] above any other. What is above it,
// [Options.Hierarchies] say: a page with the resources fs-1, doc-2 and 3 is below the
// document fs-1, doc-2 and the fileset fs-1. The error is a [*DescriptorError] for a lock
// that is in no hierarchy.
func WithIntents() Option { return acquireOption(func(w *waiting) { w.intents = true }) }

// HierarchyError reports a hierarchy that cannot be, or not beside another.
type HierarchyError struct {
	// Subjects is the hierarchy, and Reason says what is wrong with it.
	Subjects []string
	Reason   string
}

// Error shows the hierarchy and says what is wrong with it.
func (e *HierarchyError) Error() string {
	return fmt.Sprintf("hierarchy %s: %s", strings.Join(e.Subjects, " > "), e.Reason)
}

type hierarchies [][]string

// newHierarchies returns the default hierarchies and those of a team. The error is an
// [*OptionError]: a [*DescriptorError] for a subject that is not known, else a
// [*HierarchyError].
func newHierarchies(own [][]string, words vocabulary) (hierarchies, error) {
	all := hierarchies(DefaultHierarchies())
	for i, h := range own {
		if err := all.check(h, words); err != nil {
			return nil, &OptionError{"Hierarchies", i, err}
		}
		all = append(all, slices.Clone(h))
	}
	return all, nil
}

// check returns an error for a hierarchy that cannot be, or not beside the others.
func (all hierarchies) check(h []string, words vocabulary) error {
	if len(h) < 2 {
		return &HierarchyError{h, "has less than two subjects; use fileset > document, for example"}
	}
	for i, subject := range h {
		if !slices.Contains(words.subjects, subject) {
			return unknown("subject", subject, words.subjects)
		}
		if slices.Contains(h[:i], subject) {
			return &HierarchyError{h, "has " + subject + " below itself"}
		}
		if above, ok := all.above(subject, i+1); ok && !slices.Equal(above, h[:i]) {
			return &HierarchyError{h, fmt.Sprintf("%s with %d resources is also below %s; a lock could mean both", subject, i+1, strings.Join(above, " > "))}
		}
	}
	for i, above := range h {
		for _, below := range h[i+1:] {
			if path := all.path(below, above); path != nil {
				return &HierarchyError{h, fmt.Sprintf("%s is above %s here, and below it by %s; use %s > %s, or leave one hierarchy out",
					above, below, strings.Join(path, " > "), below, above)}
			}
		}
	}
	return nil
}

// path returns the shortest way down from one subject to another, by one hierarchy or by
// several; nil for none.
func (all hierarchies) path(from, to string) []string {
	paths, seen := [][]string{{from}}, map[string]bool{from: true}
	for n := 0; n < len(paths); n++ {
		path := paths[n]
		last := path[len(path)-1]
		if last == to {
			return path
		}
		for _, h := range all {
			if i := slices.Index(h, last); i >= 0 && i+1 < len(h) && !seen[h[i+1]] {
				seen[h[i+1]] = true
				paths = append(paths, append(slices.Clone(path), h[i+1]))
			}
		}
	}
	return nil
}

// above returns the subjects above a lock; false when it is in no hierarchy.
func (all hierarchies) above(subject string, resources int) ([]string, bool) {
	for _, h := range all {
		if resources <= len(h) && resources > 0 && h[resources-1] == subject {
			return h[:resources-1], true
		}
	}
	return nil, false
}

// attach gives each of the leases those of its intents, which several may have in common: an
// intent, or the lock itself where that covers it, is released after the last of them.
func (all hierarchies) attach(intents, leases Leases) {
	byKey, given := make(map[string]*Lease), make(map[*Lease]bool)
	for _, l := range intents {
		byKey[l.hold.lock.Key()] = l
	}
	for _, l := range leases {
		byKey[l.hold.lock.Key()], given[l] = l, true
	}
	for _, l := range leases {
		d := l.hold.lock
		above, _ := all.above(d.Subject, len(d.Resources))
		for i, subject := range above {
			other := byKey[Descriptor{Subject: subject, Resources: d.Resources[:i+1]}.Key()]
			if given[other] {
				other = other.again(l.ctx)
			}
			given[other] = true
			l.with = append(l.with, other)
		}
	}
}

// intents returns those of the locks, each once and in its strongest mode, but for what the
// locks cover themselves.
func (all hierarchies) intents(ds []Descriptor) ([]Descriptor, error) {
	var intents []Descriptor
	for _, d := range ds {
		above, ok := all.above(d.Subject, len(d.Resources))
		if !ok {
			return nil, &DescriptorError{"lock", d.String(), fmt.Sprintf("is in no hierarchy: none has %s in place %d; leave out the intents, or add one", d.Subject, len(d.Resources))}
		}
		for i, subject := range above {
			intent := Descriptor{Subject: subject, Predicate: d.Predicate, Resources: d.Resources[:i+1], Mode: IntentExclusive, TTL: d.TTL}
			if d.Mode == Shared || d.Mode == Intent {
				intent.Mode = Intent
			}
			same := func(other Descriptor) bool { return other.Key() == intent.Key() }
			if slices.ContainsFunc(ds, func(other Descriptor) bool { return same(other) && other.Mode.covers(intent.Mode) }) {
				continue
			}
			at := slices.IndexFunc(intents, same)
			if at < 0 {
				intents = append(intents, intent)
				continue
			}
			if intent.Mode == IntentExclusive {
				intents[at].Mode = intent.Mode
			}
			intents[at].TTL = max(intents[at].TTL, intent.TTL)
		}
	}
	for _, intent := range intents {
		if i := slices.IndexFunc(ds, func(d Descriptor) bool { return d.Key() == intent.Key() }); i >= 0 {
			return nil, &DescriptorError{"lock", ds[i].String(), fmt.Sprintf("is above another that needs %s there; ask for that mode, or for exclusive", intent.Mode)}
		}
	}
	return intents, nil
}
