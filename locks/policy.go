package locks

import (
	"fmt"
	"strings"
	"time"
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
