package sqlite

import (
	"context"
	"database/sql"
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
func (s session) translate(ctx context.Context, operation string, err error) error {
	refused, ok := errors.AsType[*sqlite.Error](err)
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*source.MissingError)):
		return fmt.Errorf("%s: %w", operation, err)
	case ctx.Err() != nil:
		return source.Ended(ctx, operation)
	case !ok:
		return fmt.Errorf("%s: %w", operation, err)
	}
	code := refused.Code()
	switch code & 0xff { // the primary code of an extended one
	case lib.SQLITE_CANTOPEN, lib.SQLITE_IOERR, lib.SQLITE_PERM:
		return fault(observer.ClassUnreachable, code, s.unopened(operation, code))
	case lib.SQLITE_ERROR:
		// Names of tables and columns and the text of the query, no values.
		return fault(observer.ClassQuery, code, fmt.Errorf("%s: %w", operation, refused))
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_NOMEM, lib.SQLITE_FULL:
		return fault(observer.ClassResource, code, fmt.Errorf("%s: %s: %s", operation, s.path, codeText(code)))
	case lib.SQLITE_READONLY, lib.SQLITE_AUTH:
		return fault(observer.ClassQuery, code, fmt.Errorf("%s: %s: %s", operation, s.path, codeText(code)))
	}
	return fault(observer.ClassUnknown, code, fmt.Errorf("%s: %s: %s", operation, s.path, codeText(code)))
}

// overRows is translate for the failure of a statement that may have evaluated
// rows: functions put values into their messages. LIMIT 0 does not keep SQLite from
// computing what is in brackets. What it has against the statement itself it says
// once more where it only compiles it, and that may be quoted.
func (s session) overRows(ctx context.Context, operation string, err error, statement step) error {
	err = s.translate(ctx, operation, err)
	refused, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	again := s.translate(ctx, operation, each(ctx, s.db, explainSQL+statement.sql, statement.args, func(*sql.Rows) error { return nil }))
	if again != nil {
		return again
	}
	return fault(observer.ClassQuery, refused.Code(), fmt.Errorf("%s: %s (%d); %s", operation, codeText(refused.Code()), refused.Code(), source.Sound))
}

func fault(class observer.Class, code int, err error) error {
	return &observer.Fault{Class: class, Code: fmt.Sprintf("SQLITE-%d", code), Err: err}
}

func (s session) unopened(operation string, code int) error {
	return fmt.Errorf("%s: %w: %s", operation, observer.ErrUnreachable, s.openFault(code))
}

func (s session) openFault(code int) string {
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
