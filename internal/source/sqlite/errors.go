package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// translate makes of a driver's error one that says what was being done, and
// wraps [observer.ErrUnreachable] where the file cannot be used from here.
func (s *Source) translate(ctx context.Context, operation string, err error) error {
	var missing *source.MissingError
	var refused *sqlite.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return fmt.Errorf("%s: %w", operation, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", operation, context.Cause(ctx))
	case !errors.As(err, &refused):
		return fmt.Errorf("%s: %w", operation, err)
	}
	code := refused.Code()
	switch code & 0xff { // the primary code of an extended one
	case lib.SQLITE_CANTOPEN, lib.SQLITE_IOERR, lib.SQLITE_PERM:
		return fmt.Errorf("%s: %w: %s", operation, observer.ErrUnreachable, s.openFault(code))
	case lib.SQLITE_ERROR:
		// Names of tables and columns and the text of the query, no values.
		return fmt.Errorf("%s: %s", operation, refused.Error())
	}
	return fmt.Errorf("%s: %s: %s", operation, s.path, codeText(code))
}

func (s *Source) openFault(code int) string {
	if _, err := os.Stat(s.path); errors.Is(err, os.ErrNotExist) {
		return fmt.Sprintf("the file %s does not exist", s.path)
	} else if errors.Is(err, os.ErrPermission) {
		return fmt.Sprintf("the file %s may not be read by this user", s.path)
	}
	return fmt.Sprintf("the file %s: %s", s.path, codeText(code))
}

// codeText is SQLite's own name for a code.
func codeText(code int) string {
	for _, c := range []int{code, code & 0xff} {
		if text, ok := sqlite.ErrorCodeString[c]; ok {
			return text
		}
	}
	return fmt.Sprintf("SQLite error %d", code)
}
