// Package source holds what the packages below it share, one of which exists
// for each kind of database: the description of a query for `validate`, the
// resolution of its column names, its statements, the stream of its rows and the watch
// over a silent one, the encoding of rows as JSON, and the clock changes of a source
// without time zones.
package source

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
)

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
	// Encoding is how the data of an event writes a value.
	Encoding events.Encoding
	// Redact is what [Select] finds that becomes of its values. The others are of the values
	// before that.
	Redact observer.Redaction
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
	// KeyOneWay names a column of the key, with its type, whose text the database does not
	// read back: no read goes on from such a key. Empty for none.
	KeyOneWay string
	// TimestampNullable says that rows without a timestamp may exist, and TimestampDate
	// that the timestamp has no time of day.
	TimestampNullable, TimestampDate bool
	// TimestampKept is Yes where the default of the column is the present time, an index
	// begins with it or a trigger names it, as of one that says when a row was written, No
	// where none of them is seen, and Unknown otherwise.
	TimestampKept Answer
	// OrderIndexed says whether an index serves the order of (timestamp, key).
	// Without one every poll reads and sorts the whole table.
	OrderIndexed Answer
	// HorizonExact says whether the horizon comes from the open transactions
	// of the source; if not, it is the source's clock less the overlap.
	HorizonExact bool
	// Warnings are full sentences on what will work, but worse than it could.
	Warnings []string
	// Risks are of the source and its account, whatever the query.
	Risks []Risk
}

// NewDescription begins the description of a query of the named table, or of none, with
// what its selection says. columns are all columns.
func NewDescription(table string, columns []Column, s Selection) Description {
	d := Description{
		Table: table, Columns: columns, Key: s.KeyNames(), Timestamp: s.TimestampName(),
		OrderIndexed: Unknown, KeyUnique: Unknown, TimestampKept: Unknown,
	}
	d.TimestampNullable = s.Timestamp >= 0 && s.Columns[s.Timestamp].Nullable
	return d
}

// Order are the columns by which rows are ordered: the timestamp, and what else the key
// has.
func (d Description) Order() []string {
	others := slices.DeleteFunc(slices.Clone(d.Key), func(name string) bool { return name == d.Timestamp })
	return append([]string{d.Timestamp}, others...)
}

// YesIf is Yes or No.
func YesIf(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// SampleRows bounds the search for two rows with one key.
const SampleRows = 10_000

// EqualKeysSQL selects a row where two rows of a sample have one key. columns are the
// items of the key and names what they are called behind the alias q; count is how
// COUNT(*) is compared with 1.
func EqualKeysSQL(from string, columns, names []string, count string) string {
	return fmt.Sprintf("SELECT 1 FROM (SELECT %s FROM %s q LIMIT %d) q GROUP BY %s HAVING %s LIMIT 1",
		strings.Join(columns, ", "), from, SampleRows, strings.Join(names, ", "), count)
}

// Covers reports whether a key has all columns of an index: the key is unique if the
// index is.
func Covers(key, columns []string) bool {
	return !slices.ContainsFunc(columns, func(name string) bool { return !slices.Contains(key, name) })
}

// Querier is a database, a connection or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Risk is something that a DBA of a source should change.
type Risk struct {
	// Saw says what was found, without a full stop.
	Saw string
	// Why and Do are full sentences, or statements of SQL: what may happen, and what
	// to do against it.
	Why, Do string
}
