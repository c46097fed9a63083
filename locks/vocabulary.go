package locks

import (
	"slices"

	"github.com/observerd/observerd/internal/nearest"
)

// Subjects returns the subjects that every manager knows; [Options.Subjects] adds more. That
// of [Name] is one of them.
func Subjects() []string {
	return []string{"fileset", "document", "page", "consolidation-job", "extraction-job", "schema", "queue-job", "audit", "name"}
}

// Predicates returns the predicates that every manager knows; [Options.Predicates] adds
// more.
func Predicates() []string {
	return []string{"processing", "reading", "writing", "triggering", "completing", "validating", "consolidating", "extracting"}
}

// vocabulary is what descriptors may be made of.
type vocabulary struct{ subjects, predicates []string }

func newVocabulary(o Options) vocabulary {
	return vocabulary{append(Subjects(), o.Subjects...), append(Predicates(), o.Predicates...)}
}

// check returns a [*DescriptorError] for a word that is not known.
func (v vocabulary) check(d Descriptor) error {
	if !slices.Contains(v.subjects, d.Subject) {
		return unknown("subject", d.Subject, v.subjects)
	}
	if !slices.Contains(v.predicates, d.Predicate) {
		return unknown("predicate", d.Predicate, v.predicates)
	}
	return nil
}

func unknown(field, word string, known []string) error {
	return &DescriptorError{field, word, "is not known; " + nearest.Suggest(word, known)}
}
