package observer

import (
	"context"
	"slices"
	"strings"
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
	// Columns become the event's data, and Key beside them; empty means all. Timestamp
	// is read even if it is not among them.
	Columns []string
	// Key are the columns of the natural key, in order. Empty means the primary key of the
	// table, which [WithKey] finds: the methods of a source but PrimaryKey need a key.
	Key []string
	// Timestamp is the column that orders the rows. Empty means that there is
	// none: every reading is of all rows.
	Timestamp string
	// NullTimestamp is the policy for NULL in Timestamp; empty is NullInclude.
	NullTimestamp NullPolicy
	// Overlap is how far behind the source's clock the horizon stays where the
	// source does not show its open transactions. Where it does, a positive
	// overlap is kept as well, for timestamps that applications write.
	Overlap time.Duration
	// MaxRowBytes bounds the JSON of one row; a larger row is a poison row.
	// 0 means 1 MiB.
	MaxRowBytes int
	// Form is that of the stream's timestamps, see [Horizon.Form]; empty for unknown.
	Form string
	// Order is the order of the members of the data, see [Marks.Order]; columns that are not
	// among them follow. Empty for that of Columns, or of the source.
	Order string
	// Redact says what becomes of columns before their values leave the source. One of the
	// key can be hashed alone, and Timestamp is not among them.
	Redact map[string]Redaction
	// HashKey is that of [RedactHash]; nil where nothing is hashed.
	HashKey *HashKey
}

// Redaction is that of a column, by its name in any case.
func (q Query) Redaction(column string) Redaction {
	for name, r := range q.Redact {
		if strings.EqualFold(name, column) {
			return r
		}
	}
	return ""
}

// Horizon is the timestamp of a source below which no more rows will appear.
type Horizon struct {
	// Cursor is the horizon in the form of [Row.Cursor]. It is empty for a query
	// without a timestamp, and while the start of an open transaction is unknown or
	// lies above a clock that went back: then the low-water mark stays where it is.
	Cursor string
	// Earliest is the earliest timestamp that may still be written: Cursor without
	// its allowance for inexact starts of transactions. That allowance may differ
	// between two polls, which does not mean that time went back. Empty means Cursor.
	Earliest string
	// Lag is how far the horizon lies behind the source's clock.
	Lag time.Duration
	// Exact says that the horizon comes from the source's open transactions. False
	// means the source's clock less the overlap, or the start of an earlier
	// transaction that the source does show.
	Exact bool
	// Clock is the source's clock in the form of [Row.Cursor]: a row above it lies in
	// the future. Empty for a query without a timestamp.
	Clock string
	// Now is the source's clock as an instant. Zero where the source does not tell:
	// then the node's clock says how far rows lie in the future, and a clock of the
	// source that went back is followed to the horizon and no further.
	Now time.Time
	// Form is the form of most timestamps, for a source whose column holds values of
	// any type: the form of the query, or if that has none, the one found. Rows of
	// other forms come with [PartStray] alone. Empty for a column of one type, and
	// where no timestamp can be read.
	Form string
	// Identity is that of [Source.Identity].
	Identity string
	// Undated says that the query may have rows without a timestamp.
	Undated bool
}

// Part is the share of a source's rows that a read is for.
type Part int

// The parts.
const (
	// PartAll are the rows of a range, and those without a timestamp.
	PartAll Part = iota
	// PartDated are the rows that have a place in the order of timestamps.
	PartDated
	// PartUndated are the rows without a timestamp, by the policy of the query, in the
	// order of [Rows.KeyOrder], from [Range.Key] on.
	PartUndated
	// PartStray are the rows whose timestamp is not of the form of the query. They
	// come as poison rows, in the same order. Without that form there are none.
	PartStray
	// PartKey is the row of [Range.Key], whether it has a timestamp or not, by the policy
	// of the query. Rows whose keys are equal to it for the source come too. The read fails
	// with [ErrNoKeyLookup] where the source finds no row by the text of its key.
	PartKey
)

// isApart reports whether the part has no place in the order of timestamps.
func (p Part) isApart() bool { return p == PartUndated || p == PartStray }

// Range says which rows are read, by the cursors of earlier rows and horizons.
// The zero value reads every row. From, Before and Limit are for queries with a
// timestamp.
type Range struct {
	// Part is the share of the range that is read.
	Part Part
	// From is the first timestamp that is read, Before the first that is not; empty
	// means no bound. Rows without a timestamp belong to every range without Before,
	// by the policy of the query.
	From, Before string
	// Limit bounds the rows with a timestamp; 0 means no limit. It is part of the
	// statement, so that the source may end its work early.
	Limit int
	// Key, as Row.Key has it, is the first key of the timestamp From, or of a part
	// without timestamps; empty means all. Order is the [Rows.KeyOrder] in which it
	// was reached: if rows come in another, the read fails with [ClassRetry]. Rows
	// whose keys are equal for the source, as by a collation, are all read again.
	//
	// ByKey asks for every row in the order of an index on the key, from Key on;
	// [Source.KeyOrder] tells whether there is one. Nothing else bounds it.
	Order, Key string
	ByKey      bool
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
	// Time is the same timestamp as an instant, in the source's time zone; of two
	// instants with one reading, either. Zero when Cursor is empty.
	Time time.Time
	// Data is the row as a JSON object, its members in the order of the
	// columns; equal rows have equal bytes. Behind them are the columns of the key
	// for which the query does not ask.
	Data []byte
	// Asked is how many bytes of Data are before those; 0 where there are none. The hash
	// of a row leaves them out: they tell no versions of a row apart, and become others when their columns become wider.
	Asked int
	// Err makes this a poison row: it says what cannot be read, naming the
	// column, never a value.
	Err error
}

// AskedData is the part of Data for which the query asks; see [Row.Asked].
func (r *Row) AskedData() []byte { return askedData(r.Data, r.Asked) }

// askedData is what a row is recognised by; see [Row.Asked].
func askedData(data []byte, asked int) []byte {
	if asked == 0 {
		return data
	}
	return append(slices.Clone(data[:asked]), '}')
}

// Rows streams the rows of one read. The caller closes it, also after an
// error; Err is asked after Next returned false. Columns, KeyColumns and KeyOrder
// are known before the first row.
type Rows interface {
	// Columns are the columns of the data, in their order.
	Columns() []Column
	// KeyColumns are the columns of the key, in its order.
	KeyColumns() []KeyColumn
	// KeyOrder identifies the order of rows that share a timestamp, so that a later
	// read can begin at any of their keys; empty where none can, as where the key does
	// not compare with its own text, or is hashed. It says nothing in a read by key.
	KeyOrder() string
	Next() bool
	Row() *Row
	Err() error
	Close() error
}

// Source reads a database that another team owns. Its sessions are read-only,
// and it runs no DDL. Implementations are safe for concurrent use. Errors of the
// database are a [*Fault]; no error ever holds a secret or a row's value.
type Source interface {
	// PrimaryKey returns the columns of the primary key of the query's table, in its order
	// and as the catalogue spells them; none for a table without one, for a view and a
	// query, and where the catalogue does not tell.
	PrimaryKey(ctx context.Context, q Query) ([]string, error)
	// Identity tells one database from another, as "KIND:VALUE": another value
	// of the same kind means that another database answers now, or this one
	// after it was restored. Empty where the source cannot tell.
	Identity(ctx context.Context) (string, error)
	// Horizon must be read before the Read that relies on it.
	Horizon(ctx context.Context, q Query) (Horizon, error)
	// CursorAt writes an instant as a cursor: the least that a row written at
	// that instant or later may have, however the clocks of its time zone change.
	// It is an error if the query has no timestamp, or an unfit one, or if the form
	// of existing timestamps is unknown.
	CursorAt(ctx context.Context, q Query, at time.Time) (string, error)
	// Restate writes a cursor of another form, as an earlier poll may have left it, in
	// the given form: the least that a row of that instant may have. A cursor of
	// that form, and one without an instant, stays as it is.
	Restate(cursor, form string) string
	// KeyOrder identifies the order of an index from which Read can begin at any key;
	// empty where there is none, or the key is hashed. Indexes, types and collations
	// change: a read goes on from a key only in the order in which it was reached.
	KeyOrder(ctx context.Context, q Query) (order string, err error)
	// Read runs one SELECT and streams the rows of a range, ordered by
	// (timestamp, key), or as [Range.ByKey] says.
	Read(ctx context.Context, q Query, r Range) (Rows, error)
	// Compare orders two cursors of this source as its own ORDER BY does:
	// negative, zero or positive. The empty cursor comes before all others.
	Compare(a, b string) int
}
