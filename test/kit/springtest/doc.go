// Package springtest speaks to INT_LOCK as Spring Integration does, for tests:
// the statements of its DefaultLockRepository, their isolation and their
// parameters' types, what its JdbcLockRegistry makes of errors, and the hashing
// of its UUIDConverter. It shares no code with what it is tested against.
//
// Three generations are different enough to matter:
//
//	Spring5  four columns; acquires under SERIALIZABLE; writes local time
//	Spring6  four columns; READ COMMITTED; writes UTC
//	Spring7  EXPIRED_AFTER, so that the TTL lives in the row
//
// It follows the sources of 5.5.20, 6.5.6 and 7.0.5. `make interop-spring` runs
// those libraries themselves, and is the judge where the two differ.
package springtest

// Generation is a family of releases of Spring Integration.
type Generation int

// The generations, by the major version that a project depends on.
const (
	Spring5 Generation = 5
	Spring6 Generation = 6
	Spring7 Generation = 7
)

// Generations are all of them.
func Generations() []Generation { return []Generation{Spring5, Spring6, Spring7} }

// String names the generation, as in the names of subtests.
func (g Generation) String() string { return "spring" + string(rune('0'+int(g))) }
