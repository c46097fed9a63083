package observer

import (
	"errors"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

// ErrUnreachable is in a source's error when the database could not be reached or
// refused the session: another node may reach it. Other errors would meet any node.
var ErrUnreachable = errors.New("source is unreachable")

// Class is the kind of a source's error, and so what to do about it. The values are
// those of metrics and tables.
type Class string

// The classes.
const (
	// ClassUnreachable is a database that does not answer, is down or has lost
	// the connection.
	ClassUnreachable Class = "unreachable"
	// ClassResource is a database that has no room: sessions, memory, locks.
	ClassResource Class = "resource"
	// ClassKilled is a session or a statement that the other team ended, or that met a
	// limit of theirs.
	ClassKilled Class = "killed"
	// ClassTimeout is a statement that took longer than the query timeout.
	ClassTimeout Class = "timeout"
	// ClassCredentials is an account that may not log on: a wrong password, a
	// locked or expired account. One attempt too many locks it.
	ClassCredentials Class = "credentials"
	// ClassSettings is an address, a service name, a certificate or an option
	// that is most likely wrong, or wrong until the database is restarted.
	ClassSettings Class = "settings"
	// ClassQuery is a statement that cannot work: a missing table, column or
	// right.
	ClassQuery Class = "query"
	// ClassData is a statement that fails over the content of a row.
	ClassData Class = "data"
	// ClassRetry is a read that the database could not go on with, as after
	// ORA-01555: it is read again from the low-water mark.
	ClassRetry Class = "retry"
	// ClassDriver is an answer that the driver did not understand.
	ClassDriver Class = "driver"
	// ClassUnknown is every other error.
	ClassUnknown Class = "unknown"
)

// pause is how long to wait after errors of a class: least after the first, doubling,
// most at last. Zero leaves it to the interval of the type.
type pause struct{ least, most time.Duration }

// LongestPause is the longest pause of any class.
const LongestPause = 30 * time.Minute

var pauses = map[Class]pause{
	ClassResource:    {30 * time.Second, 10 * time.Minute},
	ClassKilled:      {time.Minute, 10 * time.Minute},
	ClassCredentials: {LongestPause, LongestPause},
	ClassSettings:    {time.Minute, 15 * time.Minute},
	ClassQuery:       {time.Minute, 15 * time.Minute},
	ClassData:        {time.Minute, 15 * time.Minute},
}

// CountsWith reports whether failures of the two classes are counted together: those of
// one class, and those of all classes that have no pause of their own. So each class with
// one begins at its least.
func (c Class) CountsWith(other Class) bool {
	return c == other || pauses[c] == pause{} && pauses[other] == pause{}
}

// Pause is how long to wait after that many failures in a row, from 1; 0 means
// that the class asks for no more than the observer's own backoff.
func (c Class) Pause(failures int) time.Duration {
	p := pauses[c]
	return wait.Doubled(p.least, failures-1, p.most)
}

// Fault is an error of a source with its class.
type Fault struct { //nolint:errname // It is what happened to a source; its class says what kind of error that is.
	Class Class
	// Code is the database's own, such as "ORA-00942" or "42P01"; empty for none.
	Code string
	// Err says what happened, without a secret or a value.
	Err error
}

// Error implements error.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns what happened.
func (f *Fault) Unwrap() error { return f.Err }

// Is makes a fault that another node may not meet [ErrUnreachable].
func (f *Fault) Is(target error) bool {
	return target == ErrUnreachable && f.Class == ClassUnreachable
}

// ClassOf returns the class of an error; ClassUnreachable also for errors that
// only wrap [ErrUnreachable], and empty for those that no source has classified.
func ClassOf(err error) Class {
	var f *Fault
	switch {
	case errors.As(err, &f):
		return f.Class
	case errors.Is(err, ErrUnreachable):
		return ClassUnreachable
	}
	return ""
}
