-- Look
PREPARE "Look" AS
SELECT 'lease', CAST(l.lock_key AS TEXT), CAST(l.region AS TEXT), CAST(l.client_id AS TEXT), o.node, o.name, o.boot_id, o.liveness,
       CAST(l.created_date AS TEXT), (l.expired_after < (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(o.ttl_ms / 1000.0 AS DOUBLE PRECISION) IS NOT NULL)
  FROM obs_lock o
  JOIN int_lock l ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE o.region = ANY ($1::text[])
UNION ALL
SELECT 'node', '', '', '', name, '', boot_id, liveness, CAST(seen_at AS TEXT), FALSE
  FROM obs_node
 WHERE seen_at >= (clock_timestamp() - make_interval(secs => 60))
UNION ALL
SELECT 'session', CAST(objid AS TEXT), CAST(pid AS TEXT), '', '', '', '', '', '', FALSE
  FROM pg_locks
 WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid = 1868723044
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
UNION ALL
SELECT 'self', '', CAST(pg_backend_pid() AS TEXT), '', '', '', '', '', '', FALSE;

