package database

// A lock that several hold at once is a row of INT_LOCK whose CLIENT_ID is a term of the
// group, and a row of obs_hold for each holder. To all others it looks held by one: every
// holder's renewal touches the row, whose TTL is at least the longest of theirs. All that
// changes who holds locks the row first, and reads obs_hold in a later statement: one that
// began before it had the lock would not see who joined meanwhile.

// statements are those of a [Provider]; see [sqldb.Rendering.SQL] for their tokens. Fields
// that the dialect does not need are empty.
type statements struct {
	// Acquire acquires one exclusive lock, on PostgreSQL. Claim and Grant acquire several,
	// in any mode, all or none.
	Acquire, Claim, Grant string
	// Standing says what stands in the way of a lock, on SQLite. The others make the caller
	// a holder then: of the row, alone or in a group.
	Standing, TakeRow, ReapGroup, DescribeAlone, DescribeGroup, AddHold string

	// Group describes the one of those who share a lock that keeps out a mode, or else any.
	Group string
	// RenewHolds renews those who share locks, on PostgreSQL, and Prolong the row of one, on
	// SQLite.
	RenewHolds, Prolong string
	// GuardHold is of the holder's own row alone, so that others who share the lock renew,
	// come and go meanwhile. The transaction keeps the lock because all who end a holder
	// delete that row.
	GuardHold string

	// LockRow locks the row of INT_LOCK, and PinHold the holder's own one after it, on
	// PostgreSQL: a transaction that it guards may run, whose end the others must not wait
	// for with us.
	LockRow, PinHold string
	// Reap deletes the dead who have shared a lock with the term, but for one whose guarded
	// transaction still runs. The row of INT_LOCK is locked.
	Reap string
	// ReleaseHold ends one of several holders, on PostgreSQL; the last of a group deletes its
	// row. Shares reports whether a term is one.
	ReleaseHold, Shares string
	// EndAlone ends a term that holds the lock alone, EndGroup the group of which it is the
	// last holder, EndHold its share.
	EndAlone, EndGroup, EndHold string

	// Extend notes the TTL of one who holds a lock alone. The others extend a share.
	Extend, ExtendRow, ExtendGroup, ExtendHold string
	// Delay gives the row to a term that no process has; it is locked, and was ours. DelayLock
	// describes that term. The others are of a share.
	Delay, DelayLock, DelayGroup, DelayHold string
	// RedateHolds dates those who share a lock now who are dated in the future.
	RedateHolds string

	// Note notes those who wait, on PostgreSQL, and draws one ticket for each who has none, in
	// their order; NoteOne notes one, on SQLite. Wait says whose turn has come.
	Note, NoteOne, Wait string
	// LeaveLine takes callers out of the line, and Come one that has come.
	LeaveLine, Come string
	// Ahead names the first in line whom a caller must not pass.
	Ahead string

	// SeenAlone and SeenHold read the mark of a holder that is to be stolen from.
	SeenAlone, SeenHold string
	// Refusing describes one of those who share the lock that keeps out a mode.
	Refusing string

	// Find lists holders.
	Find string
	// NoteFailures adds failures, and KindStats and FailedLocks are figures for people.
	NoteFailures, KindStats, FailedLocks string
}

// Conditions and parts of statements. want is one who wants a lock.
const (
	// waiting is how many seconds ago a waiting caller was noted last that has not lost its
	// place. Its process notes it twice a second. One that is dated more than twice that
	// ahead has lost it too: the database's clock has gone back.
	waiting = "5"

	// waits is the condition that w has not lost its place.
	waits = `w.touched_at >= {ago ` + waiting + `} AND w.touched_at <= {in 2 * ` + waiting + `}`

	// ahead is the condition that one who waits, w, is ahead of want, and must not be
	// passed. It needs lock_key, region, mode, waiter, priority, ticket and holds of want.
	//
	// Of two who are noted at the same time, the one with the greater ticket may see the
	// lines before the other stands in them, and pass it, once: later looks find the other
	// ahead. All lines have the tickets in one order, so that no two sets wait for each
	// other.
	ahead = `w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND ` + waits + `
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND {conflict w.mode want.mode}
         AND NOT (want.holds <> '' AND EXISTS (
             SELECT 1
               FROM obs_wait o
              WHERE o.region = want.region AND o.waiter <> want.waiter
                AND o.touched_at >= {ago ` + waiting + `} AND o.touched_at <= {in 2 * ` + waiting + `}
                AND replace(want.holds, '|' || o.mode || ' ' || o.lock_key || '|', '') <> want.holds))`

	// behind is the condition that there is such a one.
	behind = `EXISTS (SELECT 1 FROM obs_wait w WHERE ` + ahead + `)`

	// standing is what stands in the way of want: whether a group holds the lock, whether
	// any of the group lives, and whether one of those keeps out the mode; and whether a
	// lease has ended that is no group's. It needs l, and o with the term of l.
	standing = `COALESCE(o.group_term = l.client_id, FALSE) AS grouped,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND {live h}) AS lives,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND {live h}
                    AND {conflict h.mode want.mode}) AS refuses,
         COALESCE({ended l COALESCE(o.ttl_ms / 1000.0, want.ttl)}, FALSE) AS expired`

	// released reports whether the term of o gave the lock back, to be free after a while.
	released = `COALESCE(o.liveness = 'released', FALSE) AS released`

	// come reports whether neither a holder nor one who waits is in the way of want.
	come = `NOT ` + behind + ` AND NOT EXISTS (
       SELECT 1
         FROM (SELECT l.lock_key, ` + standing + `
                 FROM int_lock l
                 LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
                WHERE l.lock_key = want.lock_key AND l.region = want.region) held
        WHERE CASE WHEN held.grouped THEN held.refuses ELSE NOT held.expired END)`

	// wanted has one who wants a lock; see [wantedArgs].
	wanted = `(SELECT CAST($1 AS CHAR(36)) AS lock_key, CAST($2 AS VARCHAR(100)) AS region, CAST($3 AS VARCHAR(36)) AS mode,
               CAST($4 AS CHAR(36)) AS waiter, CAST($5 AS INTEGER) AS priority, CAST($6 AS BIGINT) AS ticket, CAST($7 AS TEXT) AS holds,
               CAST($8 AS DOUBLE PRECISION) AS ttl) want`

	// vacant is the condition that the term $3 is the last of the group. A statement of its
	// own has deleted the dead.
	vacant = `NOT EXISTS (SELECT 1 FROM obs_hold h
       WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND h.term <> $3)`
)
