package locks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/fn"
)

// Policy is a rule that a team has made for some of its locks. A lock that breaks one is
// refused before the provider is asked.
type Policy struct {
	// Name is how refusals call the rule. Required. One of [DefaultPolicies] is replaced
	// by a policy of the same name.
	Name string
	// Subject, Predicate and Mode say for which locks the rule is. Empty ones are for all.
	Subject, Predicate string
	Mode               Mode
	// MinTTL and MaxTTL bound the TTL that a descriptor asks for; 0 is no bound.
	// ExplicitTTL refuses a descriptor without a TTL.
	MinTTL, MaxTTL time.Duration
	ExplicitTTL    bool
	// MaxHold ends the leases of workers that are stuck: see [MaxHold], which may be
	// shorter. 0 is no bound.
	MaxHold time.Duration
	// Modes are those that may be asked for; empty allows all.
	Modes []Mode
	// Metadata are the names that must have a value which is not blank.
	Metadata []string
	// PerNode is how many such locks one process may hold, by one manager; 0 is no limit.
	PerNode int
	// StealBy are the nodes, by [Options.Node], that may take such a lock from a holder that
	// lives; see [Manager.Steal]. Empty lets every node, and [Nobody] none.
	StealBy []string
	// Reason is what a refusal says, for people. Empty says which bound was broken.
	Reason string
}

// DefaultPolicies returns the rules that every manager has.
func DefaultPolicies() []Policy {
	return []Policy{
		{Name: "extraction-ttl", Subject: "page", Predicate: "extracting", ExplicitTTL: true, MaxTTL: 5 * time.Minute, Reason: "Extraction TTL exceeds 5 minutes"},
		{Name: "exclusive-audits", Subject: "audit", Modes: []Mode{Exclusive}, Reason: "Audits require exclusive locks"},
	}
}

// PolicyError reports a lock that a policy refuses.
type PolicyError struct {
	// Lock is the descriptor that was asked for, Rule the policy's name and Reason why it
	// refuses.
	Lock         Descriptor
	Rule, Reason string
}

// Error names the rule and says what to do.
func (e *PolicyError) Error() string {
	return fmt.Sprintf("%s breaks the policy %s: %s", e.Lock, e.Rule, e.Reason)
}

// PolicyConflictError reports policies that no lock could keep together.
type PolicyConflictError struct {
	// Rules are the names of one policy, or of two, and Reason says what no lock can be.
	Rules  []string
	Reason string
}

// Error names the policies.
func (e *PolicyConflictError) Error() string {
	return fmt.Sprintf("policy %s: %s", strings.Join(e.Rules, " and "), e.Reason)
}

// policies are the rules of a manager, and what it holds by them.
type policies struct {
	rules []Policy

	mu sync.Mutex
	// held counts the locks by the names of the rules that limit them.
	held map[string]int
}

// newPolicies returns the default rules and those of a team. The error is an
// [*OptionError]: a [*DescriptorError] for a rule that no lock is meant by, else a
// [*PolicyConflictError].
func newPolicies(own []Policy, words vocabulary) (*policies, error) {
	rules := fn.Only(DefaultPolicies(), func(rule Policy) bool {
		return !slices.ContainsFunc(own, func(p Policy) bool { return p.Name == rule.Name })
	})
	first := len(rules)
	rules = append(rules, own...)
	for i := range own {
		if err := own[i].checkBeside(rules[:first+i], words); err != nil {
			return nil, &OptionError{"Policies", i, err}
		}
	}
	return &policies{rules: rules, held: make(map[string]int)}, nil
}

// checkBeside returns an error for a rule that cannot be, or not beside the others.
func (p Policy) checkBeside(others []Policy, words vocabulary) error {
	if err := p.check(words); err != nil {
		return err
	}
	for _, other := range others {
		if reason := p.conflict(other); reason != "" {
			return &PolicyConflictError{[]string{other.Name, p.Name}, reason}
		}
	}
	return nil
}

// check returns an error for a rule that can be of no lock, or that no lock can keep.
func (p Policy) check(words vocabulary) error {
	if p.Name == "" {
		return &PolicyConflictError{[]string{"without a name"}, "it has no name; set one, such as extraction-ttl"}
	}
	if p.Subject != "" && !slices.Contains(words.subjects, p.Subject) {
		return unknown("subject", p.Subject, words.subjects)
	}
	if p.Predicate != "" && !slices.Contains(words.predicates, p.Predicate) {
		return unknown("predicate", p.Predicate, words.predicates)
	}
	if p.Mode != "" && !slices.Contains(modes, p.Mode) {
		return unknownMode("mode", p.Mode)
	}
	for _, mode := range p.Modes {
		if !slices.Contains(modes, mode) {
			return unknownMode("modes", mode)
		}
	}
	var reason string
	switch {
	case p.MinTTL < 0, p.MaxTTL < 0, p.MaxHold < 0, p.PerNode < 0:
		reason = "a bound is negative; use 0 for none"
	case p.MaxTTL > 0 && p.MinTTL > p.MaxTTL:
		reason = fmt.Sprintf("the least TTL %s is longer than the greatest, %s", p.MinTTL, p.MaxTTL)
	case p.Mode != "" && len(p.Modes) > 0 && !slices.Contains(p.Modes, p.Mode):
		reason = fmt.Sprintf("it is for locks in mode %s, and does not allow that mode", p.Mode)
	default:
		reason = p.checkStealBy()
	}
	if reason != "" {
		return &PolicyConflictError{[]string{p.Name}, reason}
	}
	return nil
}

// conflict says what no lock can be that two rules are for; empty for nothing.
func (p Policy) conflict(other Policy) string {
	apart := func(a, b string) bool { return a != "" && b != "" && a != b }
	switch {
	case p.Name == other.Name:
		return "they have one name; use another"
	case apart(p.Subject, other.Subject), apart(p.Predicate, other.Predicate), apart(string(p.Mode), string(other.Mode)):
		return ""
	case p.MaxTTL > 0 && other.MinTTL > p.MaxTTL, other.MaxTTL > 0 && p.MinTTL > other.MaxTTL:
		return fmt.Sprintf("the least TTL of one, %s, is longer than the greatest of the other, %s",
			max(p.MinTTL, other.MinTTL), min(cmp.Or(p.MaxTTL, math.MaxInt64), cmp.Or(other.MaxTTL, math.MaxInt64)))
	}
	inBoth := func(mode Mode) bool { return slices.Contains(other.Modes, mode) }
	if len(p.Modes) > 0 && len(other.Modes) > 0 && !slices.ContainsFunc(p.Modes, inBoth) {
		return "there is no mode that both allow"
	}
	return ""
}

// covers reports whether the rule is for the lock.
func (p Policy) covers(d Descriptor) bool {
	return (p.Subject == "" || p.Subject == d.Subject) && (p.Predicate == "" || p.Predicate == d.Predicate) && (p.Mode == "" || p.Mode == d.Mode)
}

// breach says which bound the descriptor breaks; empty for none. It has its defaults;
// explicit says that its TTL is none of them.
func (p Policy) breach(d Descriptor, explicit bool) string {
	var detail string
	switch {
	case p.ExplicitTTL && !explicit && p.MaxTTL > 0:
		return fmt.Sprintf("the TTL is missing; set one of at most %s", p.MaxTTL)
	case p.ExplicitTTL && !explicit:
		return "the TTL is missing; set one"
	case p.MaxTTL > 0 && d.TTL > p.MaxTTL:
		detail = fmt.Sprintf("the TTL is %s; use %s or less", d.TTL, p.MaxTTL)
	case d.TTL < p.MinTTL:
		detail = fmt.Sprintf("the TTL is %s; use %s or more", d.TTL, p.MinTTL)
	case len(p.Modes) > 0 && !slices.Contains(p.Modes, d.Mode):
		detail = fmt.Sprintf("the mode is %s; use %s", d.Mode, strings.Join(textsOf(p.Modes), " or "))
	default:
		i := slices.IndexFunc(p.Metadata, func(name string) bool { return blank(d.Metadata[name]) })
		if i < 0 {
			return ""
		}
		detail = fmt.Sprintf("the metadata %s is missing; set it", p.Metadata[i])
	}
	return p.because(detail)
}

// because puts the reason of the team before the detail.
func (p Policy) because(detail string) string {
	if p.Reason == "" {
		return detail
	}
	return p.Reason + " (" + detail + ")"
}

// allow returns a [*PolicyError] for a lock that breaks a rule.
func (p *policies) allow(d Descriptor, explicit bool) error {
	for _, rule := range p.rules {
		if !rule.covers(d) {
			continue
		}
		if reason := rule.breach(d, explicit); reason != "" {
			return &PolicyError{d, rule.Name, reason}
		}
	}
	return nil
}

// enter counts the lock as held, until leave. The error is a [*PolicyError] where as many
// are held as may be.
func (p *policies) enter(d Descriptor) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range p.rules {
		if rule.PerNode > 0 && rule.covers(d) && p.held[rule.Name] >= rule.PerNode {
			return &PolicyError{d, rule.Name, rule.because(fmt.Sprintf("this process holds %d such locks, which is the maximum", rule.PerNode))}
		}
	}
	p.count(d, 1)
	return nil
}

func (p *policies) leave(d Descriptor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(d, -1)
}

func (p *policies) count(d Descriptor, n int) {
	for _, rule := range p.rules {
		if rule.PerNode > 0 && rule.covers(d) {
			p.held[rule.Name] += n
		}
	}
}
