package observer

import (
	"context"
	"time"
)

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
	// source has none: all rows are read, over and over.
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
	// Form is that of the stream's timestamps, see [Horizon.Form]; empty for not known.
	Form string
	// NormalKeys asks for keys in the normal form, see [KeyRule]; false means as the
	// database writes them.
	NormalKeys bool
}

// Horizon is the instant of a source before which no more rows will appear.
type Horizon struct {
	// Cursor is the horizon in the form of [Row.Cursor]; empty for a query
	// without a timestamp, and where something is open of which nobody knows
	// when it began: the low-water mark then stays where it is. A transaction
	// that began above the clock, because that went back, is such a thing.
	Cursor string
	// Earliest is the earliest timestamp that may still be written, as Cursor
	// is, but without what Cursor allows for starts of transactions that cannot
	// be told exactly: two looks at one transaction may differ by that, which is
	// no time that has gone back. Empty means Cursor.
	Earliest string
	// Lag is how far it lies behind the source's clock.
	Lag time.Duration
	// Exact says that it was read from the source's open transactions; false
	// means the source's clock less the overlap, or the start of an earlier
	// transaction that the source does show.
	Exact bool
	// Clock is the source's clock in the form of [Row.Cursor]: a row above it
	// has a timestamp in the future. Empty for a query without a timestamp.
	Clock string
	// Now is the source's clock as an instant, as its time zone has it. Zero
	// where the source does not say: how far rows lie in the future is then
	// told by the node's clock, and a clock of the source that went back is
	// followed to the horizon, and no further.
	Now time.Time
	// Form is the form in which most timestamps are, for a source whose column holds
	// values of any: that of the query, or the one that the source has found where the
	// query has none. Rows of others come with [PartStray] alone. Empty for a column of
	// one type, and where no timestamp can be read.
	Form string
	// Undated says that there may be rows without a timestamp which the query asks for.
	Undated bool
}

// Part are those rows of a source that a read is for.
type Part int

// The parts.
const (
	// PartAll are the rows of a range, and those without a timestamp.
	PartAll Part = iota
	// PartDated are the rows that have a place in the order of timestamps.
	PartDated
	// PartUndated are the rows without a timestamp, by the policy of the query, in the
	// order of their keys that [Rows.KeyOrder] tells, from [Range.Key] on.
	PartUndated
	// PartStray are the rows whose timestamp is not of the form of the query. They
	// come as poison rows, in the same order. A range without that form has none.
	PartStray
)

// Range says which rows are read, by the cursors of earlier rows and horizons.
// The zero value reads every row. From, Before and Limit are for queries with a
// timestamp.
type Range struct {
	// Part is what of the range is read.
	Part Part
	// From is the first timestamp that is read, Before the first that is not
	// read any more; empty means no bound. Rows without a timestamp belong to
	// every range without Before, by the policy of the query, and to no other.
	From, Before string
	// Limit bounds the rows with a timestamp; 0 means no limit. The statement
	// itself says so, so that the source may end its work early.
	Limit int
	// Key is where the rows of the timestamp From begin, or those of a part without an
	// order of timestamps, as Row.Key has it, and
	// Order the order in which it was reached, as [Rows.KeyOrder] has it: if rows do
	// not come in it any more, the read fails with [ClassRetry]. Rows whose keys are
	// equal for the source, as with a collation, are all read again. Empty means the
	// first of them.
	//
	// ByKey asks for every row in the order of an index on the key, whatever the
	// timestamp; [Source.KeyOrder] says where that can be had, and which the order
	// is. There are no other bounds then but Key, that of the first row.
	Order, Key string
	ByKey      bool
}

// Column is one member of the data of an event.
type Column struct {
	// Name is the column's, as the catalogue of the source spells it.
	Name string
	// Type is what the source calls its type, without lengths: a type that
	// becomes wider is the same type.
	Type string
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
	// Columns are the columns of the data, in their order. They are known
	// before the first row.
	Columns() []Column
	// KeyColumns are the columns of the key, in its order, also known before the first
	// row.
	KeyColumns() []KeyColumn
	// KeyOrder identifies the order in which rows that share a timestamp come, so
	// that a read of what is left of them can begin at any of their keys; empty where
	// none can, as where the key would not compare with itself. It is known before the
	// first row, and of no use in a read by key.
	KeyOrder() string
	Next() bool
	Row() *Row
	Err() error
	Close() error
}

// Source reads a database that another team owns. Its sessions are read-only,
// and it runs no DDL. Implementations are safe for concurrent use. What the
// database refuses is a [*Fault]; no error ever holds a secret or a row's value.
type Source interface {
	// Identity tells one database from another, as "KIND:VALUE": another value
	// of the same kind means that another database answers now, or this one
	// after it was restored. Empty where the source cannot tell.
	Identity(ctx context.Context) (string, error)
	// Horizon must be read before the Read that relies on it.
	Horizon(ctx context.Context, q Query) (Horizon, error)
	// CursorAt writes an instant as a cursor: the least that a row written at
	// that instant or later may have, whatever the clocks of its time zone do.
	// An error means that the query has no timestamp, or an unfit one; or that the form
	// of the timestamps cannot be told, though there are some.
	CursorAt(ctx context.Context, q Query, at time.Time) (string, error)
	// Restate writes a cursor of another form, as an earlier poll may have left it, in
	// the one that is named: the least that a row of that instant may have. A cursor of
	// that form, and one without an instant, stays as it is.
	Restate(cursor, form string) string
	// KeyOrder identifies the order of an index that serves the key, so that Read
	// can begin at any key, and leaves none out that follows; empty where none
	// serves. Indexes come and go, and types and collations change: a key is gone on
	// from only in the order in which it was reached.
	KeyOrder(ctx context.Context, q Query) (order string, err error)
	// Read runs one SELECT and streams the rows of a range, ordered by
	// (timestamp, key), or as [Range.ByKey] says.
	Read(ctx context.Context, q Query, r Range) (Rows, error)
	// Compare orders two cursors of this source as its own ORDER BY does:
	// negative, zero or positive. The empty cursor comes before all others.
	Compare(a, b string) int
}
