-- Look
EXPLAIN
SELECT 'lease', CAST(l.lock_key AS TEXT), CAST(l.region AS TEXT), CAST(l.client_id AS TEXT), o.node, o.name, o.boot_id, o.liveness,
       CAST(l.created_date AS TEXT), (l.created_date < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', o.ttl_ms / 1000.0)))
  FROM obs_lock o
  JOIN int_lock l ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE o.region IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT 'node', '', '', '', name, '', boot_id, liveness, CAST(seen_at AS TEXT), FALSE
  FROM obs_node
 WHERE seen_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 60));

-- Free
EXPLAIN
DELETE FROM int_lock AS l
 WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3 AND CAST(created_date AS TEXT) = ?4
   AND EXISTS (SELECT 1 FROM obs_lock o
                WHERE o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
                  AND o.boot_id = ?5 AND o.liveness = 'flock');

-- NoteDead
EXPLAIN
UPDATE obs_lock SET liveness = 'gone' WHERE lock_key = ?1 AND region = ?2 AND term = ?3;

-- DeleteEnded
EXPLAIN
DELETE FROM int_lock
 WHERE (lock_key, region) IN (
       SELECT lock_key, region FROM int_lock
        WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3 AND TRUE);

-- MarkLeases
EXPLAIN
UPDATE obs_lock
   SET liveness = ?2
 WHERE boot_id = ?1 AND liveness <> ?2 AND liveness <> 'gone';

-- MarkNode
EXPLAIN
UPDATE obs_node SET liveness = ?2 WHERE boot_id = ?1 AND liveness <> ?2;

-- Absent
EXPLAIN
SELECT boot_id, liveness, CAST(seen_at AS TEXT) FROM obs_node WHERE seen_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 60));

