package app

import (
	"errors"
	"io/fs"
	"net"
	"syscall"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/web"
)

// Fault says what kind of trouble an error is, and so who can fix it.
type Fault int

const (
	// Failure is every error that is none of the others.
	Failure Fault = iota
	// Misused means that an argument names something that does not exist.
	Misused
	// Misconfigured means that trying again cannot help: the configuration is
	// wrong, the coordination database's server refuses what it says, no node can
	// work through the pooler before it, or a newer binary has migrated it.
	Misconfigured
	// Denied means that this user lacks a right.
	Denied
	// Unavailable means that a database cannot be reached, or was not
	// migrated yet, so that trying again later may help.
	Unavailable
)

// FaultOf classifies an error of this package. Of several faults that were
// joined, the one that has to be fixed first counts.
func FaultOf(err error) Fault {
	var configuration *config.Error
	var unknown *UnknownObserverError
	var network *net.OpError
	switch {
	case errors.As(err, &unknown):
		return Misused
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return Denied
	case errors.As(err, &configuration), errors.Is(err, errMistake), errors.Is(err, web.ErrSetting), fatal(err), sqldb.Refusal(err) != "":
		return Misconfigured
	case errors.As(err, &network) && network.Op == "listen":
		return Failure // An address of our own, not a database.
	case errors.Is(err, errAbsent), errors.Is(err, sqldb.ErrPending), errors.Is(err, observer.ErrUnreachable), passing(observer.ClassOf(err)), sqldb.Unavailable(err):
		return Unavailable
	}
	return Failure
}
