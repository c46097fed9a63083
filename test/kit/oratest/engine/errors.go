package engine

import (
	"errors"
	"fmt"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// refuse makes the refusal of a number; args fill in its text.
func refuse(code int, args ...any) *wire.Error {
	format := messages[code]
	if len(args) == 0 {
		return &wire.Error{Code: code, Text: format}
	}
	return &wire.Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// codeOf is the number of a refusal.
func codeOf(err error) int {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return 600
}

// refuseAt is refuse with the place, an offset from 0, in the statement.
func refuseAt(pos, code int, args ...any) *wire.Error {
	e := refuse(code, args...)
	e.Position = pos + 1
	return e
}
