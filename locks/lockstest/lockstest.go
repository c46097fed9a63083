// Package lockstest keeps locks in memory, for the tests of programs that use package
// [github.com/observerd/observerd/locks]. It has all that the coordination database has but
// [locks.Lease.Guard], which needs transactions, and it works in a bubble of testing/synctest.
// Its locks are those of internal/lock/locktest, where they are held to the contract of all
// providers; this package is the part of them that other modules see.
package lockstest

import (
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

// Memory has the locks of one test. The zero value is ready, and safe for concurrent use.
type Memory struct{ locks locktest.Memory }

// Provider is for [locks.Options]. Managers that have the provider of one Memory compete, as
// processes do that share a database.
func (m *Memory) Provider() locks.Provider { return &m.locks }

// Expire ends the lease as if its holder had been cut off for a TTL. Others can take the lock
// at once; the holder hears of it at its next renewal, a third of the TTL after the last one.
func (m *Memory) Expire(l *locks.Lease) { m.locks.ExpireTerm(l.Term()) }

// Fail makes all calls fail with the error, as a database that cannot be reached; nil ends
// that.
func (m *Memory) Fail(err error) { m.locks.Fail(err) }
