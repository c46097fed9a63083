package mysql

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

const (
	// lockWait is for how many seconds a statement waits for a locked table, see
	// [source.LockWaits]: the least that all servers know. The catalogue of MariaDB
	// may wait for twice as long.
	lockWait = 1
	// lockWaitTimeout is the number of the server's refusal to wait any longer.
	lockWaitTimeout = 1205
)

// locked reports whether a table could not be read because another session has
// locked it.
func locked(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Number == lockWaitTimeout
}

// lockWarned fails where the last statement, one of the catalogue, has shown no
// more of a table than its name because of a lock. While a table is renamed or
// dropped, MariaDB only warns of that.
func (c *session) lockWarned(ctx context.Context, operation string) error {
	rows, err := c.rows(ctx, operation, "SHOW WARNINGS")
	if err != nil {
		return err
	}
	for _, row := range rows {
		if string(row[1]) == strconv.Itoa(lockWaitTimeout) {
			return c.source.refusal(source.Parsing, operation, serverError(&mysql.MySQLError{Number: lockWaitTimeout}, source.Parsing))
		}
	}
	return nil
}

// same reports whether two plans of one read send the same statements for columns
// of the same types.
func (p plan) same(other plan) bool {
	return slices.Equal(p.steps, other.steps) && slices.Equal(p.selection.Columns, other.selection.Columns)
}

// errAltered says that what was planned is not what is there.
func errAltered() error {
	return &observer.Fault{Class: observer.ClassRetry, Err: errors.New("read rows: the table was altered after its columns had been read")}
}
