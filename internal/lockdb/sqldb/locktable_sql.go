package sqldb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// lockTableSQL writes the parts of a statement that depend on the generation of
// INT_LOCK: Spring Integration up to 6 keeps the TTL in the reader, 7 keeps the
// expiry in the row. On a table that has EXPIRED_AFTER both columns are
// written, so that neither generation mistakes ours for expired.
type lockTableSQL struct {
	perRow atomic.Bool
	// looked is when the catalogue was last found in order, in Unix nanoseconds;
	// 0 when it was not. looking lets those wait who come during a look.
	looked  atomic.Int64
	looking singleflight.Group
	// done holds the statements that were filled in already. There are only as
	// many as the code has, and the filling costs a tenth of an acquisition.
	done sync.Map
}

// formKey is all that a filled in statement depends on.
type formKey struct {
	text, row, ttl string
	perRow         bool
}

// relook is how long a look at the catalogue counts. A column that may be NULL,
// or has a default, can be added without any statement of ours failing.
const relook = 10 * time.Second

func (f *lockTableSQL) recognised(perRow bool) {
	f.perRow.Store(perRow)
	f.looked.Store(time.Now().UnixNano())
}

// Fits looks at the catalogue again when the last look is old. The error is
// [ErrMixedTable] when INT_LOCK has become a table that cannot be shared.
func (db *DB) Fits(ctx context.Context) error {
	if time.Duration(time.Now().UnixNano()-db.table.looked.Load()).Abs() < relook {
		return nil
	}
	return db.Recognise(ctx)
}

// Recognise looks in the catalogue which generation of Spring's table INT_LOCK is.
// The error is [ErrMixedTable] for one that nodes of both generations could use
// without noticing each other. Until a look has found the table in order, no caller
// goes on by an earlier one. A look that ended with the context of another caller has
// found nothing.
func (db *DB) Recognise(ctx context.Context) error {
	if db.readLockTable == nil {
		return nil
	}
	for {
		own := false
		_, err, _ := db.table.looking.Do("", func() (any, error) {
			own = true
			err := db.recognise(ctx)
			if err != nil {
				db.table.looked.Store(0)
			}
			return nil, err
		})
		interrupted := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
		if own || !interrupted || ctx.Err() != nil {
			return err
		}
	}
}

func (db *DB) recognise(ctx context.Context) error {
	t, err := db.readLockTable(ctx)
	if err != nil {
		return err
	}
	if err := t.check(); err != nil {
		return err
	}
	_, perRow := t.column("expired_after")
	db.table.recognised(perRow)
	return nil
}

// LockSQL returns a statement on INT_LOCK as the table is now. It fills in these tokens
// beside those of [DB.SQL]: {cols} and {vals} are the time columns of an
// insert, {touch} the assignments that make a lease run anew, {prolong} the same where
// the row may have to last longer for others who share it, {began} is when a
// lease began to run that ends a TTL later. Of a lease as others see it,
// {expired} says that they may take it, {unexpired} that they may not; {expired by o}
// reads obs_lock no more, where o is its row with the lock's key. {as was} says that the
// row is as was, with its client_id and {cols}, has read it. {alive} says that its term
// may still renew it and write under it. row is the alias
// of the INT_LOCK row, and ttl the placeholder of the TTL in seconds. Of a lease as
// others see it, the TTL is that of its holder, which is in obs_lock; ttl counts for a
// foreign holder alone.
func (db *DB) LockSQL(text, row, ttl string) string { return db.SQL(db.table.sql(text, row, ttl)) }

// StaleLockSQL is the condition, before [DB.SQL], that row is ours and has been expired
// for longer than since; since and ttl are expressions in seconds.
func (db *DB) StaleLockSQL(row, ttl, since string) string {
	if db.table.perRow.Load() {
		return row + ".expired_after < {utcago " + since + "}"
	}
	return row + ".created_date < {utcago (" + since + " + " + ttl + ")}"
}

// DeleteLocksSQL is a deletion from INT_LOCK that does not wait: it skips rows that
// another client has locked. where begins with WHERE.
func (db *DB) DeleteLocksSQL(where string) string {
	return db.SQL(`DELETE FROM int_lock WHERE (lock_key, region) IN (SELECT lock_key, region FROM int_lock` + where + `{skip})`)
}

func (f *lockTableSQL) sql(text, row, ttl string) string {
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
	cols, vals, touch := "created_date", "{utc}", "created_date = {utc}"
	prolong := touch
	alive := row + ".created_date >= {utcago " + ttl + "}"
	holder := holderTTL(row, ttl)
	over, unexpired := row+".created_date < {utcago "+holder+"}", row+".created_date >= {utcago "+holder+"}"
	overByO := row + ".created_date < {utcago COALESCE(CASE WHEN o.term = " + row + ".client_id THEN " + HolderTTL + " END, " + ttl + ")}"
	began := row + ".created_date"
	same := "was.client_id IS NOT DISTINCT FROM " + row + ".client_id AND was.created_date = " + row + ".created_date"
	if k.perRow {
		later := "({utc} + make_interval(secs => " + ttl + "))"
		// The row knows its own expiry; the parameter must still be used.
		used := " AND CAST(" + ttl + " AS DOUBLE PRECISION) IS NOT NULL"
		cols, vals = "created_date, expired_after", "{utc}, "+later
		touch = "created_date = {utc}, expired_after = " + later
		prolong = "created_date = {utc}, expired_after = GREATEST(" + row + ".expired_after, " + later + ")"
		over, alive = row+".expired_after < {utc}"+used, row+".expired_after >= {utc}"+used
		unexpired, overByO = alive, over
		same += " AND was.expired_after = " + row + ".expired_after"
		// Spring does not touch CREATED_DATE when it renews or takes over.
		began = "(" + row + ".expired_after - make_interval(secs => " + ttl + "))"
	}
	return strings.NewReplacer(
		"{cols}", cols, "{vals}", vals, "{touch}", touch, "{prolong}", prolong, "{began}", began, "{alive}", alive,
		"{expired}", "("+over+")", "{unexpired}", "("+unexpired+")", "{expired by o}", "("+overByO+")", "{as was}", same,
	).Replace(k.text)
}

// HolderTTL is the TTL of a holder whose row of obs_lock is o.
const HolderTTL = "o.ttl_ms / 1000.0"

// holderTTL is the TTL of the holder of row, in seconds, or other for a foreign one.
func holderTTL(row, other string) string {
	if strings.Contains(other, HolderTTL) {
		return other
	}
	return fmt.Sprintf(`COALESCE((
       SELECT own.ttl_ms / 1000.0 FROM obs_lock own
        WHERE own.lock_key = %[1]s.lock_key AND own.region = %[1]s.region AND own.term = %[1]s.client_id), %[2]s)`, row, other)
}
