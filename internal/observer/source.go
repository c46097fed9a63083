package observer

import (
	"context"
	"errors"
	"time"
)

// ErrUnreachable is wrapped by sources when the database could not be reached
// or refused the session: another node may have more luck. Every other error
// would meet any node.
var ErrUnreachable = errors.New("source is unreachable")

// NullPolicy says what becomes of rows whose timestamp is NULL.
type NullPolicy string

// The policies of `null-timestamp`. The default is [NullInclude].
const (
	// NullInclude reads these rows in every poll; they never move the cursor.
	NullInclude NullPolicy = "include"
	// NullSkip leaves them out.
	NullSkip NullPolicy = "skip"
	// NullError makes each of them a poison row.
	NullError NullPolicy = "error"
)

// Query says what an observer reads from its source.
type Query struct {
	// Stream is the observer's id, for messages and session names.
	Stream string
	// Table is a table or view, optionally with its schema ("wms.orders"). SQL
	// is a SELECT used in its place. Exactly one of them is set.
	Table, SQL string
	// Columns are the columns that become the event's data; empty means all.
	// Key and Timestamp are read also when they are not named here.
	Columns []string
	// Key are the columns of the natural key, in order. At least one.
	Key []string
	// Timestamp is the column that orders the rows. Empty means that the
	// source has none: every read returns every row, in any order.
	Timestamp string
	// NullTimestamp is the policy for NULL in Timestamp; empty is NullInclude.
	NullTimestamp NullPolicy
	// Overlap is how far behind the source's clock the horizon stays where
	// the source cannot tell its open transactions. Where it can, a positive
	// overlap is kept as well, for timestamps that applications write.
	Overlap time.Duration
	// MaxRowBytes bounds the JSON of one row; a larger row is a poison row.
	// 0 means 1 MiB.
	MaxRowBytes int
}

// Horizon is the instant of a source before which no more rows will appear.
type Horizon struct {
	// Cursor is the horizon in the form of [Row.Cursor]; empty for a query
	// without a timestamp.
	Cursor string
	// Lag is how far it lies behind the source's clock.
	Lag time.Duration
	// Exact says that it was read from the source's open transactions; false
	// means the source's clock less the overlap.
	Exact bool
}

// Row is one row as a source hands it over. It is valid until the next call
// of [Rows.Next].
type Row struct {
	// Key is the natural key as text (see [JoinKey]). It may be empty only
	// when Err is set.
	Key string
	// Cursor is the timestamp as the source's own text, exact and never
	// converted; empty when it is NULL or the query has none.
	Cursor string
	// Time is the same timestamp as an instant, by the source's time zone.
	// Zero when Cursor is empty.
	Time time.Time
	// Data is the row as a JSON object, its members in the order of the
	// columns; equal rows have equal bytes.
	Data []byte
	// Err makes this a poison row: it says what cannot be read, naming the
	// column, never a value.
	Err error
}

// Rows streams the rows of one read. The caller closes it, also after an
// error; Err is asked after Next returned false.
type Rows interface {
	Next() bool
	Row() *Row
	Err() error
	Close() error
}

// Source reads a database that another team owns. Its sessions are read-only,
// and it runs no DDL. Implementations are safe for concurrent use. Errors
// wrap [ErrUnreachable] where that is what they mean, and never hold a secret
// or a row's value.
type Source interface {
	// Horizon must be read before the Read that relies on it.
	Horizon(ctx context.Context, q Query) (Horizon, error)
	// Read runs one SELECT and streams its rows, those with a timestamp at or
	// after from, ordered by (timestamp, key). from is a cursor of an earlier
	// row or horizon; empty means from the beginning.
	Read(ctx context.Context, q Query, from string) (Rows, error)
	// Compare orders two cursors of this source as its own ORDER BY does:
	// negative, zero or positive. The empty cursor comes before all others.
	Compare(a, b string) int
}
