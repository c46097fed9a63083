package wiring

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/web"
	"github.com/observerd/observerd/locks"
)

// Fault says what kind of trouble an error is, and so who can fix it.
type Fault int

const (
	// Failure is every error that is none of the others.
	Failure Fault = iota
	// Misused means that an argument names something that does not exist, or asks a lock
	// provider for what it lacks.
	Misused
	// Misconfigured means that trying again cannot help: the configuration is
	// wrong, the server of the coordination database or of locks refuses what it says, no node can
	// work through the pooler before it, or a newer binary has migrated it.
	Misconfigured
	// Denied means that this user lacks a right.
	Denied
	// Unavailable means that a database cannot be reached, or was not
	// migrated yet, so that trying again later may help.
	Unavailable
)

// FaultOf classifies an error of a node or of a command. Of several faults that were
// joined, the one that has to be fixed first counts.
func FaultOf(err error) Fault {
	var timeout net.Error
	switch network, ok := errors.AsType[*net.OpError](err); {
	case errors.As(err, new(*UnknownIDError)), errors.Is(err, locks.ErrUnsupported):
		return Misused
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return Denied
	case errors.As(err, new(*config.Error)), errors.Is(err, ErrMistake), errors.Is(err, web.ErrSetting), errors.Is(err, lock.ErrRefused),
		Unusable(err) != nil, sqldb.Refusal(err) != "":
		return Misconfigured
	case ok && network.Op == "listen":
		return Failure // An address of our own, not a database.
	case errors.Is(err, ErrAbsent), errors.Is(err, sqldb.ErrPending), errors.Is(err, observer.ErrUnreachable), Passes(observer.ClassOf(err)), sqldb.Unavailable(err),
		errors.As(err, &timeout) && timeout.Timeout():
		return Unavailable
	}
	return Failure
}

// ErrMistake is what an error is, for [errors.Is], for which the configuration has to
// be changed. [Mistake] makes such an error.
var ErrMistake = errors.New("the configuration does not fit the databases")

// Mistake marks an error as one that the configuration has to be changed for.
func Mistake(err error) error { return mistakeError{err} }

type mistakeError struct{ error }

// Is makes errors.Is(err, ErrMistake) true.
func (mistakeError) Is(target error) bool { return target == ErrMistake }

// Unwrap returns the error itself.
func (e mistakeError) Unwrap() error { return e.error }

// ErrAbsent reports an SQLite file that is not there. It is not made on the
// way: an empty database in the wrong folder would only hide the mistake.
var ErrAbsent = errors.New("the coordination database does not exist")

// UnknownIDError reports an id that neither the configuration nor the
// coordination database knows.
type UnknownIDError struct {
	// What is what there is not; empty: an observer.
	What string
	ID   string
	// Known are the ids that exist, sorted.
	Known []string
}

// Error names the nearest ids, or else all of them.
func (e *UnknownIDError) Error() string {
	text := fmt.Sprintf("there is no %s %.100q", cmp.Or(e.What, "observer"), e.ID)
	if near := source.Nearest(e.ID, e.Known); len(near) > 0 {
		return fmt.Sprintf("%s; is it %s?", text, strings.Join(near, " or "))
	}
	if len(e.Known) == 0 {
		return text + "; there is none"
	}
	return fmt.Sprintf("%s; there is %s", text, strings.Join(e.Known, ", "))
}

// Unusable returns which error of package lockdb it is for which waiting for the
// coordination database cannot help; nil for every other.
func Unusable(err error) error {
	for _, plain := range []error{
		sqldb.ErrSchemaNewer, sqldb.ErrUnreleased, sqldb.ErrMixedTable, sqldb.ErrReplaced, sqldb.ErrNoDatabase, sqldb.ErrPooler, sqldb.ErrSearchPath, sqldb.ErrEncoding,
	} {
		if errors.Is(err, plain) {
			return plain
		}
	}
	return nil
}

// Passes reports whether a failure of that class passes by itself, so that it
// is no mistake of the configuration.
func Passes(class observer.Class) bool {
	switch class {
	case observer.ClassResource, observer.ClassKilled, observer.ClassTimeout, observer.ClassRetry:
		return true
	}
	return false
}
