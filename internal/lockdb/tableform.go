package lockdb

import (
	"strings"
	"sync"
	"sync/atomic"
)

// tableForm writes the parts of a statement that depend on the generation of
// INT_LOCK: Spring Integration up to 6 keeps the TTL in the reader, 7 keeps the
// expiry in the row. On a table that has EXPIRED_AFTER both columns are
// written, so that neither generation mistakes ours for expired.
type tableForm struct {
	perRow atomic.Bool
	// done holds the statements that were filled in already. There are only as
	// many as the code has, and the filling costs a tenth of an acquisition.
	done sync.Map
}

// formKey is all that a filled in statement depends on.
type formKey struct {
	text, row, ttl string
	perRow         bool
}

func (f *tableForm) set(perRow bool) { f.perRow.Store(perRow) }

// sql fills in the form's tokens: {cols} and {vals} are the time columns of an
// insert, {touch} the assignments that make a lease run anew, {expired} and
// {alive} compare. ttl is the placeholder of the TTL in seconds, row the alias
// of the INT_LOCK row that is compared.
func (f *tableForm) sql(text, row, ttl string) string {
	key := formKey{text, row, ttl, f.perRow.Load()}
	if done, ok := f.done.Load(key); ok {
		return done.(string)
	}
	done := key.fill()
	f.done.Store(key, done)
	return done
}

func (k formKey) fill() string {
	row, ttl := k.row, k.ttl
	parts := []string{
		"{cols}", "created_date", "{vals}", "{utc}",
		"{touch}", "created_date = {utc}",
		"{expired}", row + ".created_date < {utcago " + ttl + "}",
		"{alive}", row + ".created_date >= {utcago " + ttl + "}",
	}
	if k.perRow {
		later := "({utc} + make_interval(secs => " + ttl + "))"
		// The row knows its own expiry; the parameter must still be used.
		used := " AND CAST(" + ttl + " AS DOUBLE PRECISION) IS NOT NULL"
		parts = []string{
			"{cols}", "created_date, expired_after", "{vals}", "{utc}, " + later,
			"{touch}", "created_date = {utc}, expired_after = " + later,
			"{expired}", row + ".expired_after < {utc}" + used,
			"{alive}", row + ".expired_after >= {utc}" + used,
		}
	}
	return strings.NewReplacer(parts...).Replace(k.text)
}

// staleSQL is the condition that row has been expired for longer than since;
// both are expressions in seconds.
func (f *tableForm) staleSQL(row, ttl, since string) string {
	if f.perRow.Load() {
		return row + ".expired_after < {utcago " + since + "}"
	}
	return row + ".created_date < {utcago (" + since + " + " + ttl + ")}"
}
