package config

// Locks are the locks that serve other programs, beside those of the pollers.
type Locks struct {
	// Region separates applications that share the lock table, at most 100
	// characters. Default: LOCKS, which the pollers do not use.
	Region string `key:"region" default:"LOCKS" unit:"text"`
	// Subjects and Predicates are words of a team, beside the built-in ones, that
	// describe a lock. Default: none.
	Subjects   []string `key:"subjects" unit:"names"`
	Predicates []string `key:"predicates" unit:"names"`
}
