// Package source holds what the packages below it share, one of which exists
// for each kind of database: the description of a query for `validate`, the
// resolution of its column names, the encoding of rows as JSON, the watch over
// a silent stream, and the clock changes of a source without time zones.
package source

import "github.com/observerd/observerd/internal/observer"

// Answer is what a database can say about a question on a query.
type Answer string

// The answers. Unknown is the honest one for a view, a query or a key that is
// unique today without an index that keeps it so.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// Column is one column of a table or of a query's result.
type Column struct {
	// Name as the catalogue spells it, Type as the database prints it.
	Name, Type string
	// Nullable says that the column may hold NULL. It is true where the
	// database cannot tell, as for the columns of a view.
	Nullable bool
	// KeyRule and KeyWidth are those of [observer.KeyColumn].
	KeyRule  observer.KeyRule
	KeyWidth string
}

// Description is what a source found out about a query before it is polled.
type Description struct {
	// Table is the table as the statements name it; empty for a query.
	Table string
	// Columns are all columns, in the order of the database.
	Columns []Column
	// Key and Timestamp are the configured columns as the catalogue spells
	// them. Timestamp is empty for a query without one.
	Key       []string
	Timestamp string
	// KeyUnique is Yes where an index guarantees it, No where two rows with
	// one key were found, and Unknown otherwise.
	KeyUnique Answer
	// KeyOrdered says that an index serves the key, see [observer.Source.KeyOrder].
	KeyOrdered bool
	// TimestampNullable says that rows without a timestamp may exist.
	TimestampNullable bool
	// OrderIndexed says whether an index serves the order of (timestamp, key).
	// Without one every poll reads and sorts the whole table.
	OrderIndexed Answer
	// HorizonExact says whether the horizon comes from the open transactions
	// of the source; if not, it is the source's clock less the overlap.
	HorizonExact bool
	// Standby says that the server follows another one, and so does not know the
	// open transactions of that one. It is only looked at for a query with a
	// timestamp.
	Standby bool
	// Warnings are full sentences on what will work, but worse than it could.
	Warnings []string
	// Risks are of the source and its account, whatever the query.
	Risks []Risk
}

// Risk is something that a DBA of a source should change.
type Risk struct {
	// Saw says what was found, without a full stop.
	Saw string
	// Why and Do are full sentences, or statements of SQL: what may happen, and what
	// to do against it.
	Why, Do string
}
