package lock

import "slices"

// Mode is what holders of the same key let each other do. The zero value is an exclusive
// lock of a key that is locked in no other mode.
type Mode string

// The modes are those of multiple granularity locking (Gray et al., "Granularity of Locks
// and Degrees of Consistency in a Shared Data Base", 1976). Every provider has exclusive
// locks.
const (
	// Exclusive lets no other holder in.
	Exclusive Mode = "exclusive"
	// Shared lets other shared holders in, and intents.
	Shared Mode = "shared"
	// Intent says that something below the key is being read. It keeps out exclusive
	// holders alone.
	Intent Mode = "intent"
	// IntentExclusive says that something below the key is being changed.
	IntentExclusive Mode = "intent-exclusive"
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Exclusive, Shared, Intent, IntentExclusive} }

// Known reports whether the mode is one of [Modes], or the zero value.
func (m Mode) Known() bool { return m == "" || slices.Contains(Modes(), m) }

// Alone reports whether a lock of that mode has one holder.
func (m Mode) Alone() bool { return m == "" || m == Exclusive }

// Conflicts reports whether two holders in these modes keep each other out.
func (m Mode) Conflicts(other Mode) bool {
	switch {
	case m.Alone() || other.Alone():
		return true
	case m == Shared:
		return other == IntentExclusive
	case m == IntentExclusive:
		return other == Shared
	}
	return false
}

// Covers reports whether a holder in this mode may do all that the other one allows.
func (m Mode) Covers(other Mode) bool { return m == other || m.Alone() || other == Intent }
