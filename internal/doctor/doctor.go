// Package doctor judges a coordination database: it reports defects of the database,
// of its server, of the lock table and of the nodes that do harm, or would if
// something else happened too. It gets facts (see status.Examination) and reads
// nothing else.
//
// Each check is a small function in one list. For each finding it reports what it saw,
// why that matters and what to do. A check that finds nothing wrong reports that too,
// so that a reader knows what was checked.
package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/status"
)

// Severity says how much a finding matters.
type Severity string

// The severities, from the least to the worst.
const (
	// OK means that a check found nothing wrong.
	OK Severity = "ok"
	// Note is worth knowing; nothing need be done.
	Note Severity = "note"
	// Warning works, but worse or less safely than it could.
	Warning Severity = "warning"
	// Problem does harm now, or will.
	Problem Severity = "problem"
)

// Finding is one result of a check.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check names the check, such as "clock".
	Check string `json:"check"`
	// Saw is the fact, Why its consequence, Do the remedy. Why and Do may be empty.
	Saw string `json:"saw"`
	Why string `json:"why,omitempty"`
	Do  string `json:"do,omitempty"`
}

// Expectation is the part of the node's configuration that the checks compare with.
type Expectation struct {
	// Locks are all locks that the node would take.
	Locks []Lock
	// ConfigHash is the hash that the node would publish.
	ConfigHash string
	// AutoMigrate says that nodes migrate by themselves.
	AutoMigrate bool
	// TTL is the TTL of locks that the configuration does not name.
	TTL time.Duration
}

// Lock is a lock of the configuration.
type Lock struct {
	Name, Region string
	KeyFormat    lockdb.KeyFormat
	TTL          time.Duration
	// Type is the observer type whose lock it is, Interval the distance between
	// its turns; empty and 0 for other locks. Enabled is the switch of the type
	// and of the node together.
	Type     string
	Interval time.Duration
	Enabled  bool
	// Suspended reports whether the type is not polled at that time of day. Nil: never.
	Suspended func(time.Time) bool
}

// Key returns the key of the lock's row.
func (l Lock) Key() string { return lockdb.Key(l.KeyFormat, l.Name) }

// Judge runs all checks.
func Judge(e status.Examination, want Expectation) []Finding {
	x := &input{Examination: e, want: want}
	var all []Finding
	for _, c := range checks() {
		if c.only != "" && c.only != e.Backend {
			continue
		}
		if len(e.Blind) > 0 && !c.blind {
			continue
		}
		f := &findings{check: c.name}
		c.run(x, f)
		all = append(all, f.all...)
	}
	return all
}

// check is one of the checks. only names the backend on which it makes sense; empty
// means both. blind checks are made also where a part was not seen: the others must
// not report such a part as well.
type check struct {
	name, only string
	run        func(x *input, f *findings)
	blind      bool
}

// checks returns all checks, in the order in which findings are reported.
func checks() []check {
	const postgres, sqlite = "postgres", "sqlite"
	return []check{
		{"look", "", looked, true},
		{"server", postgres, server, false},
		{"server", sqlite, library, false},
		{"durability", postgres, durability, false},
		{"pooler", postgres, pooler, false},
		{"rights", postgres, rights, true},
		{"search-path", postgres, searchPath, false},
		{"schema", "", schema, false},
		{"clock", "", clock, false},
		{"lock-table", "", table, false},
		{"rows-in-the-future", "", future, false},
		{"rows-in-the-past", "", past, false},
		{"holders", "", holders, false},
		{"keys", "", keys, false},
		{"ttl", "", ttls, false},
		{"nodes", "", nodes, false},
		{"configuration", "", configuration, false},
		{"types", "", types, false},
		{"paused", "", paused, false},
		{"poison", "", poison, false},
		{"sinks", "", sinks, false},
	}
}

// input is the input of the checks.
type input struct {
	status.Examination
	want Expectation
}

// findings collects the findings of one check.
type findings struct {
	check string
	all   []Finding
}

func (f *findings) add(s Severity, saw, why, do string) {
	f.all = append(f.all, Finding{Severity: s, Check: f.check, Saw: saw, Why: why, Do: do})
}

// fine adds that nothing is wrong, unless the check has found a warning or a problem.
func (f *findings) fine(format string, args ...any) {
	if slices.ContainsFunc(f.all, func(found Finding) bool { return found.Severity == Warning || found.Severity == Problem }) {
		return
	}
	f.add(OK, fmt.Sprintf(format, args...), "", "")
}

// words returns a duration for people.
func words(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d.Round(24*time.Hour)/(24*time.Hour))
	case d >= 10*time.Minute: // A row is seen some seconds after it was written.
		return d.Round(time.Minute).String()
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// direction returns how far one clock is ahead of or behind another.
func direction(ahead time.Duration) string {
	if ahead < 0 {
		return words(-ahead) + " behind"
	}
	return words(ahead) + " ahead of"
}

// watched returns for how long INT_LOCK was watched.
func (x *input) watched() string {
	if x.Watched < x.Every {
		return "in one look"
	}
	return "in " + words(x.Watched.Round(time.Second))
}
