package database

// The statements that differ between the dialects by tokens alone.
const (
	groupSQL = `
SELECT h.node, h.mode, h.touched_at, h.ttl_ms, {now}
  FROM int_lock l
  JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id AND o.group_term = o.term
  LEFT JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND {live h}
 WHERE l.lock_key = $1 AND l.region = $2
 ORDER BY CASE WHEN {conflict h.mode $3} THEN 0 ELSE 1 END, h.touched_at DESC
 LIMIT 1`

	guardHoldSQL = `
UPDATE obs_hold AS h
   SET touched_at = {now}
 WHERE lock_key = $1 AND region = $2 AND term = $3 AND {live h}
   AND EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = h.group_term)`

	lockRowSQL = `
SELECT client_id FROM int_lock WHERE lock_key = $1 AND region = $2{update}`

	reapSQL = `
DELETE FROM obs_hold
 WHERE lock_key = $1 AND region = $2 AND term IN (
       SELECT h.term FROM obs_hold h WHERE h.lock_key = $1 AND h.region = $2 AND h.term <> $3 AND NOT {live h}{skip})`

	endAloneSQL = `
DELETE FROM int_lock
 WHERE lock_key = $1 AND region = $2 AND client_id = $3
   AND NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = $1 AND o.region = $2 AND o.group_term = $3)`

	endGroupSQL = `
DELETE FROM int_lock AS l
 WHERE lock_key = $1 AND region = $2
   AND EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND h.term = $3)
   AND ` + vacant

	endHoldSQL = `
DELETE FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3`

	extendSQL = `
UPDATE obs_lock SET ttl_ms = $4 WHERE lock_key = $1 AND region = $2 AND term = $3`

	extendRowSQL = `
UPDATE int_lock AS l
   SET {prolong l $4}
 WHERE lock_key = $1 AND region = $2
   AND EXISTS (SELECT 1 FROM obs_hold h
                WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3 AND h.group_term = l.client_id AND {live h}
                  AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL)`

	extendGroupSQL = `
UPDATE obs_lock
   SET ttl_ms = CASE WHEN ttl_ms < $4 THEN $4 ELSE ttl_ms END
 WHERE lock_key = $1 AND region = $2
   AND term = (SELECT h.group_term FROM obs_hold h WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3)`

	extendHoldSQL = `
UPDATE obs_hold AS h
   SET touched_at = {now}, ttl_ms = $4
 WHERE lock_key = $1 AND region = $2 AND term = $3 AND {live h}`

	delaySQL = `
UPDATE int_lock AS l
   SET client_id = $5, {touch $4}
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL`

	delayLockSQL = `
UPDATE obs_lock
   SET term = $4, boot_id = '', liveness = 'released', ttl_ms = $5
 WHERE lock_key = $1 AND region = $2 AND term = $3`

	delayGroupSQL = `
UPDATE obs_lock
   SET liveness = 'released'
 WHERE lock_key = $1 AND region = $2
   AND term = (SELECT h.group_term FROM obs_hold h WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3)`

	delayHoldSQL = `
UPDATE obs_hold SET term = $4 WHERE lock_key = $1 AND region = $2 AND term = $3`

	redateHoldsSQL = `
UPDATE obs_hold
   SET touched_at = {now}
 WHERE lock_key = $1 AND region = $2 AND touched_at > {now}
   AND term IN (SELECT term FROM obs_hold WHERE lock_key = $1 AND region = $2{skip})`

	leaveLineSQL = `
DELETE FROM obs_wait WHERE waiter {among $1}`

	aheadSQL = `
SELECT w.node
  FROM ` + wanted + `
  JOIN obs_wait w ON ` + ahead + `
 ORDER BY w.priority DESC, w.ticket
 LIMIT 1`

	seenAloneSQL = `
SELECT CAST(created_date AS TEXT)
  FROM int_lock
 WHERE lock_key = $1 AND region = $2 AND client_id = $3
   AND NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = $1 AND o.region = $2 AND o.group_term = $3)`

	seenHoldSQL = `
SELECT {mark h.touched_at}
  FROM obs_hold h
  JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
 WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3{update}`

	refusingSQL = `
SELECT h.node, h.touched_at, h.ttl_ms, {now}
  FROM obs_hold h
  JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
 WHERE h.lock_key = $1 AND h.region = $2 AND {live h} AND {conflict h.mode $3}
 ORDER BY h.touched_at DESC
 LIMIT 1`

	// findSQL returns the holders of locks in region $1, of node $2, after the row $3 and
	// the term $4, at most $5: those of the row $6, that are $7 seconds old, that are over
	// if $8 says so, and whose descriptors match all patterns of the list $9. A planner that
	// expects few locks of one condition, and those of a join, or has an index for a region,
	// reads all and sorts them: COALESCE keeps it from that, so that it goes by the key and
	// ends with the page.
	findSQL = `
SELECT held.*, (SELECT count(*) FROM obs_wait w WHERE w.lock_key = held.lock_key AND w.region = $1 AND ` + waits + `), {now}
  FROM (
    SELECT * FROM (
    SELECT o.lock_key, o.term, 'exclusive' AS mode, o.fence, o.name, o.node, o.descriptor, o.metadata, o.ttl_ms, o.acquired_at,
           (SELECT CAST(l.created_date AS TEXT) FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region) AS touched
      FROM obs_lock o
     WHERE o.lock_key >= $3 AND (o.lock_key > $3 OR o.term > $4)
       AND (o.lock_key = $6 OR $6 = '')
       AND COALESCE(o.region = $1 AND o.group_term <> o.term AND ($2 = '' OR o.node = $2)
                AND (CAST($7 AS DOUBLE PRECISION) <= 0 OR o.acquired_at <= {ago CAST($7 AS DOUBLE PRECISION)})
                AND NOT EXISTS (SELECT 1 FROM {numbered $9} p WHERE o.descriptor || ':' NOT LIKE p.value ESCAPE '\')
                AND o.term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region)
                AND (NOT $8 OR (SELECT l.created_date FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region) <= {utcago o.ttl_ms / 1000.0}), FALSE)
     ORDER BY o.lock_key, o.term LIMIT $5) alone
    UNION ALL
    SELECT * FROM (
    SELECT h.lock_key, h.term, h.mode, h.fence, h.name, h.node, h.descriptor, h.metadata, h.ttl_ms, h.acquired_at, {mark h.touched_at}
      FROM obs_hold h
     WHERE h.lock_key >= $3 AND (h.lock_key > $3 OR h.term > $4)
       AND (h.lock_key = $6 OR $6 = '')
       AND COALESCE(h.region = $1 AND ($2 = '' OR h.node = $2)
                AND (CAST($7 AS DOUBLE PRECISION) <= 0 OR h.acquired_at <= {ago CAST($7 AS DOUBLE PRECISION)})
                AND NOT EXISTS (SELECT 1 FROM {numbered $9} p WHERE h.descriptor || ':' NOT LIKE p.value ESCAPE '\')
                AND h.group_term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = h.lock_key AND l.region = h.region)
                AND (NOT $8 OR h.touched_at <= {ago h.ttl_ms / 1000.0}), FALSE)
     ORDER BY h.lock_key, h.term LIMIT $5) shared
  ) held
 ORDER BY held.lock_key, held.term
 LIMIT $5`

	// noteFailuresSQL has a list in JSON, $1, of the values of a row each. The rows are
	// locked in one order, so that processes do not block each other.
	noteFailuresSQL = `
INSERT INTO obs_lock_failure AS f (lock_key, region, predicate, subject, name, failures, first_at, last_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, CAST(value ->> 5 AS BIGINT), {now}, {now}
  FROM {elements $1}
 WHERE TRUE
 ORDER BY 1, 2, 3
ON CONFLICT (lock_key, region, predicate) DO UPDATE
   SET failures = f.failures + excluded.failures, last_at = excluded.last_at`

	kindStatsSQL = `
SELECT s.subject, s.predicate, s.active, s.ttl_ms, s.oldest_ms, COALESCE(o.node, ''), s.waiting, s.failures
  FROM (
    SELECT subject, predicate, CAST(sum(active) AS BIGINT) AS active,
           CAST(COALESCE(sum(active * average_ttl_ms) / NULLIF(sum(active), 0), 0) AS BIGINT) AS ttl_ms, COALESCE(max(oldest_ms), 0) AS oldest_ms,
           CAST(sum(waiting) AS BIGINT) AS waiting, CAST(sum(failures) AS BIGINT) AS failures
      FROM obs_lock_stats
     WHERE region = $1
     GROUP BY subject, predicate
  ) s
  LEFT JOIN (
    SELECT subject, predicate, node, row_number() OVER (PARTITION BY subject, predicate ORDER BY acquired_at, fence) AS n
      FROM obs_active_locks
     WHERE region = $1
  ) o ON o.subject = s.subject AND o.predicate = s.predicate AND o.n = 1
 ORDER BY s.subject, s.predicate`

	failedLocksSQL = `
SELECT name, CAST(sum(failures) AS BIGINT) AS failures, max(last_at)
  FROM obs_lock_failure
 WHERE region = $1
 GROUP BY name
 ORDER BY failures DESC, name
 LIMIT $2`
)
