//go:build failpoints

package sqldb

import (
	"database/sql/driver"
	"os"
	"strconv"

	sqlite3 "modernc.org/sqlite"
)

// A connection of SQLite has no name. Triggers of a torture run ask which process
// writes.
func init() {
	sqlite3.MustRegisterScalarFunction("torture_writer", 0, func(*sqlite3.FunctionContext, []driver.Value) (driver.Value, error) {
		return strconv.Itoa(os.Getpid()), nil
	})
}
