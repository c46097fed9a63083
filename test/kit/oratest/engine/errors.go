package engine

import (
	"fmt"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// refuse makes the refusal of a number; args fill in its text. Whatever reads, compiles
// or runs a statement refuses it by a panic, which [protect] turns into an error.
func refuse(code int, args ...any) *wire.Error {
	format := messages[code]
	if len(args) == 0 {
		return &wire.Error{Code: code, Text: format}
	}
	return &wire.Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// refuseAt is refuse with the place, an offset from 0, in the statement.
func refuseAt(pos, code int, args ...any) *wire.Error {
	e := refuse(code, args...)
	e.Position = pos + 1
	return e
}

// unimplemented refuses what the engine does not do.
func unimplemented(what string) *wire.Error { return refuse(3001, what) }

// protect returns the refusal by which f ended, or the conflict.
func protect(f func()) (err error) {
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case *wire.Error:
			err = failure
		case *conflict:
			err = failure
		default:
			panic(failure)
		}
	}()
	f()
	return nil
}
