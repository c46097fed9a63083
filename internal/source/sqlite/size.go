package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/observerd/observerd/internal/source"
)

// Any column may hold a value of any length, whatever it is declared as, and to look
// at the lengths of all would take SQLite half as long again as to read them. So a
// read begins without, under a limit on the connection that a value ends the statement
// with which is longer than its share of a row. Then the read goes on where it was,
// in the same snapshot, by the statement that leaves behind what is too long.

// leastShare is the least limit: a row of a thousand short columns is no large one.
const leastShare = 4 << 10

// wide is how many bytes a character of UTF-8 may have in a database in UTF-16, whose
// lengths count twice.
const wide = 2

// Size implements [source.Dialect]. octet_length reads no more of a value than how long it
// is.
func (d dialect) Size(_ source.Column, qualified string, most int) (fits, length string) {
	if !d.bounded {
		return "", ""
	}
	octets := "octet_length(" + qualified + ")"
	return fmt.Sprintf("%s <= %d", octets, most), fmt.Sprintf("%s / %d", octets, wide)
}

// share is how long a value may be that is read without a look at the others.
func (p plan) share() int { return max(p.most/len(p.selection.Columns), leastShare) }

// limitValues bounds the values that statements of a connection may meet, and returns
// the limit that was.
func limitValues(conn *sql.Conn, most int) (int, error) {
	return sqlite.Limit(conn, lib.SQLITE_LIMIT_LENGTH, most)
}

// metLarge reports whether a statement has met the limit, and so the first large row.
func (r *rows) metLarge(err error) bool {
	refused, ok := errors.AsType[*sqlite.Error](err)
	return ok && !r.bounded && refused.Code()&0xff == lib.SQLITE_TOOBIG
}

// run begins a statement, in the form for large rows where one was met.
func (r *rows) run(ctx context.Context) (err error) {
	text, most := r.step.sql, r.share
	if r.bounded {
		text, most = r.step.bounded, r.unlimited
	}
	if _, err := limitValues(r.conn, most); err != nil {
		return err
	}
	r.current, err = r.tx.QueryContext(ctx, text, r.step.args...) //nolint:rowserrcheck // [rows.advance] does, where the rows end.
	return err
}

// again begins the statement anew that has met a large row, and skips the rows that
// were read.
func (r *rows) again(ctx context.Context) error {
	r.bounded = true
	if err := r.run(ctx); err != nil {
		return err
	}
	for range r.count {
		if !r.current.Next() {
			return errors.Join(errSkipped, r.current.Err())
		}
		r.stream.Answered()
	}
	return nil
}

// errSkipped says that a snapshot was none.
var errSkipped = errors.New("rows that were read no longer exist")

// items is how many a row of the present statement has.
func (r *rows) items() int {
	if r.bounded {
		return len(r.values)
	}
	return len(r.values) - 1
}

// release gives the connection back as it was.
func (r *rows) release() {
	if r.unlimited > 0 {
		_, _ = limitValues(r.conn, r.unlimited) // It fails for a connection that is closed.
	}
	_ = r.conn.Close()
}
