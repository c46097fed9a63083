package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config/kind"
)

// Locks are the locks that serve other programs, beside those of the pollers.
type Locks struct {
	// Region separates applications that share the lock table, at most 100
	// characters. Default: LOCKS, which the pollers do not use.
	Region string `key:"region" default:"LOCKS" unit:"text"`
	// Subjects and Predicates are words of a team, beside the built-in ones, that
	// describe a lock. Default: none.
	Subjects   []string `key:"subjects" unit:"names"`
	Predicates []string `key:"predicates" unit:"names"`
	// Hierarchies are subjects, each below the one before it, as in "fileset >
	// document". Default: none beside the built-in ones.
	Hierarchies []string `key:"hierarchies" unit:"subjects"`
	// Policies are the rules of a team, in the order of the file.
	Policies []LockPolicy `key:"policies"`
	// Providers keep locks elsewhere than in the coordination database.
	Providers []LockProvider `key:"providers"`
}

// DatabaseProvider is the id of the lock provider that is always there: the coordination
// database.
const DatabaseProvider = "database"

// LockProvider is where locks are kept, beside the coordination database.
type LockProvider struct {
	// ID names the provider, for --provider: letters a-z, digits and "-", at most 64, and
	// not "database". Required.
	ID string `key:"id" shown:"required" required:"true" unit:"name"`
	// Type is the name of the provider's kind. Required.
	Type string `key:"type" shown:"required" required:"true" oneof:"<lock-providers>"`
	// Settings are the keys of the kind. [Load] always sets them.
	Settings kind.Settings `kinds:"lock-providers"`
}

// LockPolicy is a rule for some of the locks.
type LockPolicy struct {
	// ID is how refusals call the rule: letters a-z, digits and "-", at most 64. One of a
	// built-in policy replaces that. Required.
	ID string `key:"id" shown:"required" required:"true" unit:"name"`
	// Subject, Predicate and Mode say for which locks the rule is. Default: for all.
	Subject   string `key:"subject" shown:"all" unit:"name"`
	Predicate string `key:"predicate" shown:"all" unit:"name"`
	Mode      string `key:"mode" shown:"all" oneof:"exclusive|shared|intent|intent-exclusive"`
	// MinTTL and MaxTTL bound the TTL that is asked for; 0 is no bound. Default: 0.
	MinTTL time.Duration `key:"min-ttl" default:"0s"`
	MaxTTL time.Duration `key:"max-ttl" default:"0s"`
	// ExplicitTTL says that a TTL must be given. Default: false.
	ExplicitTTL bool `key:"explicit-ttl" default:"false"`
	// MaxHold ends leases that are held for as long; 0 is no bound. Default: 0.
	MaxHold time.Duration `key:"max-hold" default:"0s"`
	// Modes are those that may be asked for. Default: all.
	Modes []string `key:"modes" shown:"all" unit:"modes"`
	// Metadata are the names that must have a value. Default: none.
	Metadata []string `key:"metadata" unit:"names"`
	// PerNode is how many such locks one process may hold; 0 is no limit. Default: 0.
	PerNode int `key:"per-node" default:"0" unit:"locks"`
	// StealBy are the nodes that may take such a lock from a holder that lives; "nobody"
	// alone lets none. Default: all.
	StealBy []string `key:"steal-by" shown:"all" unit:"nodes"`
	// Reason is what a refusal says, for people. Default: which bound was broken.
	Reason string `key:"reason" shown:"the bound" unit:"text"`
}

// LocksMistake is what is wrong with policies or hierarchies.
type LocksMistake struct {
	// Key is below locks, such as policies[0].subject.
	Key, Text string
}

func (l *loader) checkLocks(cfg *Config) {
	o := cfg.Locks
	switch {
	case o.Region == "":
		l.Reject("locks.region", "region is empty; use LOCKS")
	case slices.Contains(cfg.Scheduler.LockRegions(), o.Region):
		l.Reject("locks.region", "the pollers have this region; use another, such as LOCKS")
	}
	checkLabel(l.Report, "locks.region", o.Region)
	for key, words := range map[string][]string{"locks.subjects": o.Subjects, "locks.predicates": o.Predicates} {
		for _, word := range words {
			if why := badName(word); why != "" {
				l.Reject(key, fmt.Sprintf("%q: %s", word, why))
			}
		}
	}
	l.checkLockRules(o)
	members := make([]member, len(o.Providers))
	for i, p := range o.Providers {
		members[i] = member{p.ID, p.Settings}
		if p.ID == DatabaseProvider {
			l.Reject(fmt.Sprintf("locks.providers[%d].id", i), "the coordination database has this id, and is always there; choose another")
		}
	}
	l.checkFamily("locks.providers", "lock provider", "a lock provider that keeps its locks in this place", members)
}

// checkLockRules compares policies and hierarchies, when each of them can be read.
func (l *loader) checkLockRules(o Locks) {
	for i, p := range o.Policies {
		if at := fmt.Sprintf("locks.policies[%d]", i); l.OK(at) {
			checkName(l.Report, at+".id", p.ID)
		}
	}
	unread := func(p Problem) bool {
		return strings.HasPrefix(p.Key, "locks.") && p.Key != "locks.region" && !strings.HasPrefix(p.Key, "locks.providers")
	}
	if l.options.Kinds.CheckLocks == nil || slices.ContainsFunc(l.Problems, unread) {
		return
	}
	for _, m := range l.options.Kinds.CheckLocks(o) {
		l.Reject("locks."+m.Key, m.Text)
	}
}
