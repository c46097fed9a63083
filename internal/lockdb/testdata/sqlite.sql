-- Former
EXPLAIN
SELECT l.client_id IS NOT NULL AS expired, COALESCE(l.client_id = o.term, l.client_id IS NULL) AS ours,
       CASE WHEN o.boot_term = o.term THEN o.liveness END AS liveness, o.node
  FROM (SELECT 1 AS one) x
  LEFT JOIN int_lock l ON l.lock_key = ?1 AND l.region = ?2
  LEFT JOIN obs_lock o ON o.lock_key = ?1 AND o.region = ?2;

-- Take
EXPLAIN
INSERT INTO int_lock AS l (lock_key, region, client_id, created_date)
VALUES (?1, ?2, ?3, strftime('%Y-%m-%d %H:%M:%f000', 'now'))
ON CONFLICT (lock_key, region) DO UPDATE
   SET client_id = excluded.client_id, created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE (l.created_date < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', COALESCE((
       SELECT own.ttl_ms / 1000.0 FROM obs_lock own
        WHERE own.lock_key = l.lock_key AND own.region = l.region AND own.term = l.client_id), ?4))))
RETURNING client_id;

-- Describe
EXPLAIN
INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness, metadata)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, strftime('%Y-%m-%d %H:%M:%f000', 'now'), ?9, ?3, ?10, ?11)
ON CONFLICT (lock_key, region) DO UPDATE
   SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
       descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
       boot_id = excluded.boot_id, boot_term = excluded.boot_term, liveness = excluded.liveness,
       metadata = excluded.metadata;

-- Guard
EXPLAIN
UPDATE int_lock AS l
   SET created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3 AND (l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?4)));

-- Release
EXPLAIN
DELETE FROM int_lock
 WHERE (lock_key, region) IN (
       SELECT lock_key, region FROM int_lock
        WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3);

-- Holds
EXPLAIN
SELECT EXISTS (SELECT 1 FROM int_lock WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3);

-- Holder
EXPLAIN
SELECT l.client_id, (l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', COALESCE(o.ttl_ms / 1000.0, CAST(?3 AS DOUBLE PRECISION))))), COALESCE(o.ttl_ms / 1000.0, CAST(?3 AS DOUBLE PRECISION)), l.created_date, strftime('%Y-%m-%d %H:%M:%f000', 'now'), o.node, o.fence, o.term IS NOT NULL AND l.created_date > strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE l.lock_key = ?1 AND l.region = ?2;

-- Redate
EXPLAIN
UPDATE int_lock AS l
   SET created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM obs_lock o
 WHERE l.lock_key = ?1 AND l.region = ?2 AND l.created_date > strftime('%Y-%m-%d %H:%M:%f000', 'now')
   AND o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   AND EXISTS (SELECT 1 FROM int_lock WHERE lock_key = ?1 AND region = ?2);

