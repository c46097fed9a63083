package lockdb

// janitorSQL are the statements of [DB.Clean]. Sinks and what follows are those of the log;
// of the others, whose $1 is an age in seconds, each deletes from a table or its like.
type janitorSQL struct {
	Polls, Dead, DeadValues, Audit, Sweeps, Nodes, Holds, Locks, Notes, Waits, Failures string
	Sinks, LockSink, ForgetSink, FirstEvent, CleanEvents                                string
}

// Rows are deleted a batch at a time, those of locks in the order of their key. That deletion
// repeats the condition, since the row of a lock that another takes meanwhile is a new one.
var janitorTexts = janitorSQL{
	Polls: `DELETE FROM obs_poll WHERE (stream, id) IN (SELECT stream, id FROM obs_poll WHERE finished_at < {past $1} ORDER BY finished_at LIMIT 5000)`,
	// By the record of an accepted row a poll knows the row again, so it stays with its
	// stream: neither time nor a pause ends what a person has accepted. That of a refused
	// row says nothing to a poll.
	Dead: `
DELETE FROM obs_dead
 WHERE id IN (SELECT d.id
                FROM obs_dead d
                LEFT JOIN obs_cursor c ON c.stream = d.stream
               WHERE d.last_at < {past $1} AND (d.refused OR c.stream IS NULL)
               ORDER BY d.last_at
               LIMIT 5000)`,
	// What was kept of the rows whose records stay.
	DeadValues: `
UPDATE obs_dead
   SET raw = ''
 WHERE id IN (SELECT id FROM obs_dead WHERE last_at < {past $1} AND raw <> '' ORDER BY last_at LIMIT 5000)`,
	Audit: `DELETE FROM obs_audit WHERE id IN (SELECT id FROM obs_audit WHERE at < {past $1} ORDER BY at LIMIT 5000)`,
	Sweeps: `
DELETE FROM obs_sweep
 WHERE state <> 'running' AND updated_at < {ago $1}
   AND EXISTS (SELECT 1 FROM obs_sweep later
                WHERE later.stream = obs_sweep.stream AND later.kind = obs_sweep.kind AND later.id > obs_sweep.id)`,
	Nodes: `DELETE FROM obs_node WHERE seen_at < {ago $1}`,
	Holds: `
DELETE FROM obs_hold
 WHERE ` + staleHold + `
   AND (lock_key, region, term) IN (SELECT lock_key, region, term FROM obs_hold WHERE ` + staleHold + ` ORDER BY lock_key, region, term LIMIT 5000)`,
	// Leases of ours that ended long ago: a node died and no other node wanted the lock
	// since. While the row's term is ours, so is its TTL.
	Locks: `
DELETE FROM int_lock
 WHERE ` + staleLock + `
   AND (lock_key, region) IN (SELECT lock_key, region FROM int_lock WHERE ` + staleLock + ` ORDER BY lock_key, region LIMIT 5000)`,
	Notes: `
DELETE FROM obs_lock
 WHERE ` + staleNote + `
   AND (lock_key, region) IN (SELECT lock_key, region FROM obs_lock WHERE ` + staleNote + ` ORDER BY lock_key, region LIMIT 5000)`,
	Waits: `
DELETE FROM obs_wait
 WHERE touched_at < {ago $1}
   AND (waiter, lock_key, region) IN (SELECT waiter, lock_key, region FROM obs_wait WHERE touched_at < {ago $1} ORDER BY waiter, lock_key, region LIMIT 5000)`,
	Failures: `
DELETE FROM obs_lock_failure
 WHERE last_at < {ago $1}
   AND (lock_key, region, predicate) IN (SELECT lock_key, region, predicate FROM obs_lock_failure
                                          WHERE last_at < {ago $1} ORDER BY lock_key, region, predicate LIMIT 5000)`,

	Sinks:    `SELECT sink, max(updated_at) >= {ago $1} FROM obs_sink_offset GROUP BY sink`,
	LockSink: `SELECT 1 FROM obs_sink_offset WHERE sink = $1 AND stream = ''{update}`,
	ForgetSink: `
DELETE FROM obs_sink_offset
 WHERE sink = $1
   AND NOT EXISTS (SELECT 1 FROM obs_sink_offset fed WHERE fed.sink = $1 AND fed.updated_at >= {ago $2})`,
	FirstEvent: `SELECT min(seq) FROM obs_event WHERE stream = $1`,
	// The old events before the first that is not old, so that the rest has no gap, whatever
	// the clock did while they were logged; one time counts for all rows, whatever it does
	// meanwhile. A sink with an offset by now, because it was spared, could not be judged or
	// is new, needs the events behind that: without them its stream would have a gap, and
	// halt.
	CleanEvents: `
DELETE FROM obs_event
 WHERE stream = $1 AND seq >= $2 AND seq < $3 AND logged_at < {past $4}
   AND seq < coalesce((SELECT min(seq)
                         FROM obs_event
                        WHERE stream = $1 AND seq >= $2 AND seq < $3 AND logged_at >= {past $4}), $3)
   AND seq <= coalesce((SELECT min(coalesce(o.last_seq, 0))
                          FROM obs_sink_offset s
                          LEFT JOIN obs_sink_offset o ON o.sink = s.sink AND o.stream = $1
                         WHERE s.stream = ''), $3)`,
}

const (
	staleHold = `touched_at < {ago CAST($1 AS DOUBLE PRECISION) + ttl_ms / 1000.0}`
	staleLock = `EXISTS (
       SELECT 1 FROM obs_lock o
        WHERE o.lock_key = int_lock.lock_key AND o.region = int_lock.region AND o.term = int_lock.client_id
          AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = o.lock_key AND h.region = o.region AND h.group_term = o.term)
          AND {stale int_lock CAST($1 AS DOUBLE PRECISION)})`
	staleNote = `acquired_at < {ago $1}
   AND NOT EXISTS (SELECT 1 FROM int_lock l
                    WHERE l.lock_key = obs_lock.lock_key AND l.region = obs_lock.region AND l.client_id = obs_lock.term)`
)
