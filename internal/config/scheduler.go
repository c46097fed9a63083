package config

import "time"

// Scheduler says when the observers of a type are polled.
type Scheduler struct {
	// Shared holds for all types. Its Enabled is the switch of the node:
	// false leaves it healthy and ready, but it takes no lock and no turn.
	Shared `key:"observer"`
	// Types has the settings of each type: the built-in ones and those that
	// an observer uses. What a type does not set is taken from Shared, except
	// Enabled.
	Types map[string]Settings `key:"<type>-observer"`
}

// Shared are the settings for all types, and those that only exist once.
type Shared struct {
	Settings
	// ShutdownTimeout is how long a poll may take to finish its chunk when
	// the process is asked to stop. Default: 20 s.
	ShutdownTimeout time.Duration `key:"shutdown-timeout" default:"20s" min:"1s"`
	// Spread is the time within which the types of one fixed-delay follow each
	// other, evenly, in place of all at one tick; at most half of the
	// shortest fixed-delay. Default: 0, all at one tick.
	Spread time.Duration `key:"spread" default:"0s"`
	// Concurrency is how many observers of one type run side by side.
	// Default: 8.
	Concurrency int `key:"concurrency" default:"8" min:"1" max:"100" unit:"observers"`
}

// Settings may differ by type.
type Settings struct {
	// Enabled is the switch of the type on this node. Default: true.
	Enabled bool `key:"enabled" default:"true"`
	// FixedDelay is the distance between the STARTS of a type's polls, for
	// the whole cluster. The name is that of the system this replaces, where
	// the distance ran from the end of a poll. Default: 30 s.
	FixedDelay time.Duration `key:"fixed-delay" default:"30s" min:"1s"`
	// NotBetween is a time of day in which no poll of the type begins, with its
	// time zone: 22:00-06:00 Europe/Berlin. Default: empty, none.
	NotBetween string `key:"not-between" unit:"HH:MM-HH:MM ZONE"`
	// Lock is the lock under which the type is polled.
	Lock Lock `key:"lock"`
}

// Lock is how the lock of a type is taken.
type Lock struct {
	// TTL is how long the lock outlives its last renewal. At least 3 s on
	// PostgreSQL and 15 s on SQLite. Default: 60 s.
	TTL time.Duration `key:"ttl" default:"60s"`
	// Wait is how long another holder is waited for closely, with a look at
	// least twice a second; then, and with 0 at once, looks come at growing
	// distances. Default: 1 s.
	Wait time.Duration `key:"wait" default:"1s"`
	// Region separates applications that share the lock table, at most 100
	// characters. Default: DEFAULT.
	Region string `key:"region" default:"DEFAULT" unit:"text"`
	// KeyFormat is plain (the lock's name as it is) or spring (hashed as
	// Spring Integration does, to share locks with Java nodes).
	// Default: plain.
	KeyFormat string `key:"key-format" default:"plain" oneof:"plain|spring"`
}
