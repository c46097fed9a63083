package locks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/nearest"
)

// Rules are what a manager of the same options refuses before it asks its provider, for
// those who check a configuration or a descriptor.
type Rules struct {
	words       vocabulary
	hierarchies hierarchies
	policies    *policies
}

// NewRules returns the rules of the options' words, hierarchies and policies; the other
// options do not matter. The error is an [*OptionError].
func NewRules(o Options) (*Rules, error) {
	words := vocabulary{append(Subjects(), o.Subjects...), append(Predicates(), o.Predicates...)}
	hierarchies, err := newHierarchies(o.Hierarchies, words)
	if err != nil {
		return nil, err
	}
	policies, err := newPolicies(o.Policies, words)
	if err != nil {
		return nil, err
	}
	return &Rules{words, hierarchies, policies}, nil
}

// allowed returns the descriptor with its defaults. The error is a [*DescriptorError] or a
// [*PolicyError].
func (r *Rules) allowed(d Descriptor) (Descriptor, error) {
	explicit := d.TTL != 0
	d, err := d.normal()
	if err != nil {
		return d, err
	}
	if err := r.words.check(d); err != nil {
		return d, err
	}
	return d, r.policies.allow(d, explicit)
}

// Policies returns the policies in force: those of [DefaultPolicies] that are not replaced,
// and then those of the options.
func (r *Rules) Policies() []Policy { return slices.Clone(r.policies.rules) }

// Check returns the error with which [Manager.Acquire] refuses the descriptor, a
// [*DescriptorError] or a [*PolicyError]. What a process holds is not looked at: see
// [Policy.PerNode].
func (r *Rules) Check(d Descriptor) error {
	_, err := r.allowed(d)
	return err
}

// OptionError reports a policy or a hierarchy that cannot be, or not beside another.
type OptionError struct {
	// Option is the option's name, Policies or Hierarchies, and Index the place in it.
	Option string
	Index  int
	// Err says what is wrong: a [*DescriptorError] with the field, a [*PolicyConflictError]
	// or a [*HierarchyError].
	Err error
}

// Error names the place.
func (e *OptionError) Error() string {
	return fmt.Sprintf("locks: Options.%s[%d]: %v", e.Option, e.Index, e.Err)
}

// Unwrap returns what is wrong.
func (e *OptionError) Unwrap() error { return e.Err }

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

// check returns a [*DescriptorError] for the words that are not known.
func (v vocabulary) check(d Descriptor) error {
	var wrong *DescriptorError
	if !slices.Contains(v.subjects, d.Subject) {
		wrong = unknown("subject", d.Subject, v.subjects)
	}
	if !slices.Contains(v.predicates, d.Predicate) {
		predicate := unknown("predicate", d.Predicate, v.predicates)
		if wrong == nil {
			return predicate
		}
		wrong.Reason += "; and " + predicate.Error()
	}
	if wrong == nil {
		return nil
	}
	return wrong
}

// unknown names the keys and the options that make a word known.
func unknown(field, word string, known []string) *DescriptorError {
	option := map[string]string{"subject": "Subjects", "predicate": "Predicates"}[field]
	return &DescriptorError{field, word, fmt.Sprintf("is not known; %s, or add it to locks.%s in the configuration (in Go: Options.%s)",
		nearest.Suggest(word, known), strings.ToLower(option), option)}
}
