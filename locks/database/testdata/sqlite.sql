-- Standing
EXPLAIN
SELECT l.client_id, COALESCE(o.group_term = l.client_id, FALSE) AS grouped,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0)))) AS lives,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0)))
                    AND (h.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (h.mode = 'shared' AND want.mode = 'intent-exclusive') OR (h.mode = 'intent-exclusive' AND want.mode = 'shared'))) AS refuses,
         COALESCE((l.created_date < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', COALESCE(o.ttl_ms / 1000.0, want.ttl)))), FALSE) AS expired,
         EXISTS (SELECT 1 FROM obs_wait w WHERE w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND w.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 5)) AND w.touched_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', 2 * 5))
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND (w.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (w.mode = 'shared' AND want.mode = 'intent-exclusive') OR (w.mode = 'intent-exclusive' AND want.mode = 'shared'))
         AND NOT (want.holds <> '' AND EXISTS (
             SELECT 1
               FROM obs_wait o
              WHERE o.region = want.region AND o.waiter <> want.waiter
                AND o.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 5)) AND o.touched_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', 2 * 5))
                AND replace(want.holds, '|' || o.mode || ' ' || o.lock_key || '|', '') <> want.holds))) AS behind, COALESCE(o.liveness = 'released', FALSE) AS released, COALESCE(o.node, '')
  FROM (SELECT CAST(?1 AS CHAR(36)) AS lock_key, CAST(?2 AS VARCHAR(100)) AS region, CAST(?3 AS VARCHAR(36)) AS mode,
               CAST(?4 AS CHAR(36)) AS waiter, CAST(?5 AS INTEGER) AS priority, CAST(?6 AS BIGINT) AS ticket, CAST(?7 AS TEXT) AS holds,
               CAST(?8 AS DOUBLE PRECISION) AS ttl) want
  LEFT JOIN int_lock l ON l.lock_key = want.lock_key AND l.region = want.region
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id;

-- TakeRow
EXPLAIN
INSERT INTO int_lock AS l (lock_key, region, client_id, created_date)
VALUES (?1, ?2, ?3, strftime('%Y-%m-%d %H:%M:%f000', 'now'))
ON CONFLICT (lock_key, region) DO UPDATE
   SET client_id = excluded.client_id, created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now');

-- ReapGroup
EXPLAIN
DELETE FROM obs_hold AS h
 WHERE lock_key = ?1 AND region = ?2 AND (group_term <> ?3 OR NOT (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0))));

-- DescribeAlone
EXPLAIN
INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, strftime('%Y-%m-%d %H:%M:%f000', 'now'), '', '', ?9)
ON CONFLICT (lock_key, region) DO UPDATE
   SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
       descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
       boot_id = excluded.boot_id, liveness = excluded.liveness,
       metadata = excluded.metadata;

-- DescribeGroup
EXPLAIN
INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata, group_term)
VALUES (?1, ?2, ?3, ?4, ?5, '', '', ?6, strftime('%Y-%m-%d %H:%M:%f000', 'now'), '', '', '', ?3)
ON CONFLICT (lock_key, region) DO UPDATE
   SET ttl_ms = CASE WHEN o.term = excluded.term THEN max(o.ttl_ms, excluded.ttl_ms) ELSE excluded.ttl_ms END,
       term = excluded.term, fence = excluded.fence, name = excluded.name, node = '', descriptor = '', acquired_at = excluded.acquired_at,
       boot_id = '', liveness = '', metadata = '', group_term = excluded.group_term;

-- AddHold
EXPLAIN
INSERT INTO obs_hold (lock_key, region, term, group_term, mode, fence, name, node, descriptor, metadata, ttl_ms, acquired_at, touched_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, strftime('%Y-%m-%d %H:%M:%f000', 'now'), strftime('%Y-%m-%d %H:%M:%f000', 'now'));

-- Group
EXPLAIN
SELECT h.node, h.mode, h.touched_at, h.ttl_ms, strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM int_lock l
  JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id AND o.group_term = o.term
  LEFT JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0)))
 WHERE l.lock_key = ?1 AND l.region = ?2
 ORDER BY CASE WHEN (h.mode = 'exclusive' OR ?3 = 'exclusive'
       OR (h.mode = 'shared' AND ?3 = 'intent-exclusive') OR (h.mode = 'intent-exclusive' AND ?3 = 'shared')) THEN 0 ELSE 1 END, h.touched_at DESC
 LIMIT 1;

-- Prolong
EXPLAIN
UPDATE int_lock SET created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now') WHERE lock_key = ?1 AND region = ?2;

-- GuardHold
EXPLAIN
UPDATE obs_hold AS h
   SET touched_at = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE lock_key = ?1 AND region = ?2 AND term = ?3 AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0)))
   AND EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = ?1 AND l.region = ?2 AND l.client_id = h.group_term);

-- LockRow
EXPLAIN
SELECT client_id FROM int_lock WHERE lock_key = ?1 AND region = ?2;

-- Reap
EXPLAIN
DELETE FROM obs_hold
 WHERE lock_key = ?1 AND region = ?2 AND term IN (
       SELECT h.term FROM obs_hold h WHERE h.lock_key = ?1 AND h.region = ?2 AND h.term <> ?3 AND NOT (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0))));

-- Shares
EXPLAIN
SELECT EXISTS (SELECT 1
                 FROM int_lock l
                 JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id
                WHERE l.lock_key = ?1 AND l.region = ?2 AND h.term = ?3);

-- EndAlone
EXPLAIN
DELETE FROM int_lock
 WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3
   AND NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = ?1 AND o.region = ?2 AND o.group_term = ?3);

-- EndGroup
EXPLAIN
DELETE FROM int_lock AS l
 WHERE lock_key = ?1 AND region = ?2
   AND EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND h.term = ?3)
   AND NOT EXISTS (SELECT 1 FROM obs_hold h
       WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND h.term <> ?3);

-- EndHold
EXPLAIN
DELETE FROM obs_hold WHERE lock_key = ?1 AND region = ?2 AND term = ?3;

-- Extend
EXPLAIN
UPDATE obs_lock SET ttl_ms = ?4 WHERE lock_key = ?1 AND region = ?2 AND term = ?3;

-- ExtendRow
EXPLAIN
UPDATE int_lock AS l
   SET created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE lock_key = ?1 AND region = ?2
   AND EXISTS (SELECT 1 FROM obs_hold h
                WHERE h.lock_key = ?1 AND h.region = ?2 AND h.term = ?3 AND h.group_term = l.client_id AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0)))
                  AND CAST(?4 AS DOUBLE PRECISION) IS NOT NULL);

-- ExtendGroup
EXPLAIN
UPDATE obs_lock
   SET ttl_ms = CASE WHEN ttl_ms < ?4 THEN ?4 ELSE ttl_ms END
 WHERE lock_key = ?1 AND region = ?2
   AND term = (SELECT h.group_term FROM obs_hold h WHERE h.lock_key = ?1 AND h.region = ?2 AND h.term = ?3);

-- ExtendHold
EXPLAIN
UPDATE obs_hold AS h
   SET touched_at = strftime('%Y-%m-%d %H:%M:%f000', 'now'), ttl_ms = ?4
 WHERE lock_key = ?1 AND region = ?2 AND term = ?3 AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0)));

-- Delay
EXPLAIN
UPDATE int_lock AS l
   SET client_id = ?5, created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3 AND CAST(?4 AS DOUBLE PRECISION) IS NOT NULL;

-- DelayLock
EXPLAIN
UPDATE obs_lock
   SET term = ?4, boot_id = '', liveness = 'released', ttl_ms = ?5
 WHERE lock_key = ?1 AND region = ?2 AND term = ?3;

-- DelayGroup
EXPLAIN
UPDATE obs_lock
   SET liveness = 'released'
 WHERE lock_key = ?1 AND region = ?2
   AND term = (SELECT h.group_term FROM obs_hold h WHERE h.lock_key = ?1 AND h.region = ?2 AND h.term = ?3);

-- DelayHold
EXPLAIN
UPDATE obs_hold SET term = ?4 WHERE lock_key = ?1 AND region = ?2 AND term = ?3;

-- RedateHolds
EXPLAIN
UPDATE obs_hold
   SET touched_at = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE lock_key = ?1 AND region = ?2 AND touched_at > strftime('%Y-%m-%d %H:%M:%f000', 'now')
   AND term IN (SELECT term FROM obs_hold WHERE lock_key = ?1 AND region = ?2);

-- NoteOne
EXPLAIN
INSERT INTO obs_wait (waiter, lock_key, region, mode, priority, ticket, node, touched_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, strftime('%Y-%m-%d %H:%M:%f000', 'now'))
ON CONFLICT (waiter, lock_key, region) DO UPDATE
   SET touched_at = excluded.touched_at;

-- Wait
EXPLAIN
SELECT NOT EXISTS (SELECT 1 FROM obs_wait w WHERE w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND w.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 5)) AND w.touched_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', 2 * 5))
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND (w.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (w.mode = 'shared' AND want.mode = 'intent-exclusive') OR (w.mode = 'intent-exclusive' AND want.mode = 'shared'))
         AND NOT (want.holds <> '' AND EXISTS (
             SELECT 1
               FROM obs_wait o
              WHERE o.region = want.region AND o.waiter <> want.waiter
                AND o.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 5)) AND o.touched_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', 2 * 5))
                AND replace(want.holds, '|' || o.mode || ' ' || o.lock_key || '|', '') <> want.holds))) AND NOT EXISTS (
       SELECT 1
         FROM (SELECT l.lock_key, COALESCE(o.group_term = l.client_id, FALSE) AS grouped,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0)))) AS lives,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0)))
                    AND (h.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (h.mode = 'shared' AND want.mode = 'intent-exclusive') OR (h.mode = 'intent-exclusive' AND want.mode = 'shared'))) AS refuses,
         COALESCE((l.created_date < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', COALESCE(o.ttl_ms / 1000.0, want.ttl)))), FALSE) AS expired
                 FROM int_lock l
                 LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
                WHERE l.lock_key = want.lock_key AND l.region = want.region) held
        WHERE CASE WHEN held.grouped THEN held.refuses ELSE NOT held.expired END)
  FROM (SELECT CAST(?1 AS CHAR(36)) AS lock_key, CAST(?2 AS VARCHAR(100)) AS region, CAST(?3 AS VARCHAR(36)) AS mode,
               CAST(?4 AS CHAR(36)) AS waiter, CAST(?5 AS INTEGER) AS priority, CAST(?6 AS BIGINT) AS ticket, CAST(?7 AS TEXT) AS holds,
               CAST(?8 AS DOUBLE PRECISION) AS ttl) want;

-- LeaveLine
EXPLAIN
DELETE FROM obs_wait WHERE waiter IN (SELECT value FROM json_each(?1));

-- Come
EXPLAIN
DELETE FROM obs_wait WHERE waiter = ?1;

-- Ahead
EXPLAIN
SELECT w.node
  FROM (SELECT CAST(?1 AS CHAR(36)) AS lock_key, CAST(?2 AS VARCHAR(100)) AS region, CAST(?3 AS VARCHAR(36)) AS mode,
               CAST(?4 AS CHAR(36)) AS waiter, CAST(?5 AS INTEGER) AS priority, CAST(?6 AS BIGINT) AS ticket, CAST(?7 AS TEXT) AS holds,
               CAST(?8 AS DOUBLE PRECISION) AS ttl) want
  JOIN obs_wait w ON w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND w.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 5)) AND w.touched_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', 2 * 5))
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND (w.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (w.mode = 'shared' AND want.mode = 'intent-exclusive') OR (w.mode = 'intent-exclusive' AND want.mode = 'shared'))
         AND NOT (want.holds <> '' AND EXISTS (
             SELECT 1
               FROM obs_wait o
              WHERE o.region = want.region AND o.waiter <> want.waiter
                AND o.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 5)) AND o.touched_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', 2 * 5))
                AND replace(want.holds, '|' || o.mode || ' ' || o.lock_key || '|', '') <> want.holds))
 ORDER BY w.priority DESC, w.ticket
 LIMIT 1;

-- SeenAlone
EXPLAIN
SELECT CAST(created_date AS TEXT)
  FROM int_lock
 WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3
   AND NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = ?1 AND o.region = ?2 AND o.group_term = ?3);

-- SeenHold
EXPLAIN
SELECT h.touched_at
  FROM obs_hold h
  JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
 WHERE h.lock_key = ?1 AND h.region = ?2 AND h.term = ?3;

-- Refusing
EXPLAIN
SELECT h.node, h.touched_at, h.ttl_ms, strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM obs_hold h
  JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
 WHERE h.lock_key = ?1 AND h.region = ?2 AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0))) AND (h.mode = 'exclusive' OR ?3 = 'exclusive'
       OR (h.mode = 'shared' AND ?3 = 'intent-exclusive') OR (h.mode = 'intent-exclusive' AND ?3 = 'shared'))
 ORDER BY h.touched_at DESC
 LIMIT 1;

-- Find
EXPLAIN
SELECT held.*, (SELECT count(*) FROM obs_wait w WHERE w.lock_key = held.lock_key AND w.region = ?1 AND w.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 5)) AND w.touched_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', 2 * 5))), strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM (
    SELECT * FROM (
    SELECT o.lock_key, o.term, 'exclusive' AS mode, o.fence, o.name, o.node, o.descriptor, o.metadata, o.ttl_ms, o.acquired_at,
           (SELECT CAST(l.created_date AS TEXT) FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region) AS touched
      FROM obs_lock o
     WHERE o.lock_key >= ?3 AND (o.lock_key > ?3 OR o.term > ?4)
       AND (o.lock_key = ?6 OR ?6 = '')
       AND COALESCE(o.region = ?1 AND o.group_term <> o.term AND (?2 = '' OR o.node = ?2)
                AND (CAST(?7 AS DOUBLE PRECISION) <= 0 OR o.acquired_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', CAST(?7 AS DOUBLE PRECISION))))
                AND NOT EXISTS (SELECT 1 FROM (SELECT key + 1 AS n, value FROM json_each(?9)) p WHERE o.descriptor || ':' NOT LIKE p.value ESCAPE '\')
                AND o.term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region)
                AND (NOT ?8 OR (SELECT l.created_date FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region) <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', o.ttl_ms / 1000.0))), FALSE)
     ORDER BY o.lock_key, o.term LIMIT ?5) alone
    UNION ALL
    SELECT * FROM (
    SELECT h.lock_key, h.term, h.mode, h.fence, h.name, h.node, h.descriptor, h.metadata, h.ttl_ms, h.acquired_at, h.touched_at
      FROM obs_hold h
     WHERE h.lock_key >= ?3 AND (h.lock_key > ?3 OR h.term > ?4)
       AND (h.lock_key = ?6 OR ?6 = '')
       AND COALESCE(h.region = ?1 AND (?2 = '' OR h.node = ?2)
                AND (CAST(?7 AS DOUBLE PRECISION) <= 0 OR h.acquired_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', CAST(?7 AS DOUBLE PRECISION))))
                AND NOT EXISTS (SELECT 1 FROM (SELECT key + 1 AS n, value FROM json_each(?9)) p WHERE h.descriptor || ':' NOT LIKE p.value ESCAPE '\')
                AND h.group_term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = h.lock_key AND l.region = h.region)
                AND (NOT ?8 OR h.touched_at <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0))), FALSE)
     ORDER BY h.lock_key, h.term LIMIT ?5) shared
  ) held
 ORDER BY held.lock_key, held.term
 LIMIT ?5;

-- NoteFailures
EXPLAIN
INSERT INTO obs_lock_failure AS f (lock_key, region, predicate, subject, name, failures, first_at, last_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, CAST(value ->> 5 AS BIGINT), strftime('%Y-%m-%d %H:%M:%f000', 'now'), strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM json_each(?1)
 WHERE TRUE
 ORDER BY 1, 2, 3
ON CONFLICT (lock_key, region, predicate) DO UPDATE
   SET failures = f.failures + excluded.failures, last_at = excluded.last_at;

-- KindStats
EXPLAIN
SELECT s.subject, s.predicate, s.active, s.ttl_ms, s.oldest_ms, COALESCE(o.node, ''), s.waiting, s.failures
  FROM (
    SELECT subject, predicate, CAST(sum(active) AS BIGINT) AS active,
           CAST(COALESCE(sum(active * average_ttl_ms) / NULLIF(sum(active), 0), 0) AS BIGINT) AS ttl_ms, COALESCE(max(oldest_ms), 0) AS oldest_ms,
           CAST(sum(waiting) AS BIGINT) AS waiting, CAST(sum(failures) AS BIGINT) AS failures
      FROM obs_lock_stats
     WHERE region = ?1
     GROUP BY subject, predicate
  ) s
  LEFT JOIN (
    SELECT subject, predicate, node, row_number() OVER (PARTITION BY subject, predicate ORDER BY acquired_at, fence) AS n
      FROM obs_active_locks
     WHERE region = ?1
  ) o ON o.subject = s.subject AND o.predicate = s.predicate AND o.n = 1
 ORDER BY s.subject, s.predicate;

-- FailedLocks
EXPLAIN
SELECT name, CAST(sum(failures) AS BIGINT) AS failures, max(last_at)
  FROM obs_lock_failure
 WHERE region = ?1
 GROUP BY name
 ORDER BY failures DESC, name
 LIMIT ?2;

