-- Look
PREPARE "Look" AS
SELECT 'lease', l.lock_key, l.region, l.client_id, o.node, o.name, o.boot_id, o.liveness, l.created_date, l.ended
  FROM obs_lock o
 CROSS JOIN LATERAL (
       SELECT CAST(i.lock_key AS TEXT), CAST(i.region AS TEXT), CAST(i.client_id AS TEXT), CAST(i.created_date AS TEXT), (i.expired_after < (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(o.ttl_ms / 1000.0 AS DOUBLE PRECISION) IS NOT NULL) AS ended
         FROM int_lock i
        WHERE o.lock_key = i.lock_key AND o.region = i.region AND o.term = i.client_id
        LIMIT 1) AS l
 WHERE o.region = ANY ($1::text[])
UNION ALL
SELECT 'self', '', CAST(pg_backend_pid() AS TEXT), '', '', '', '', '', '', FALSE
UNION ALL
SELECT 'node', '', '', '', name, config_hash, boot_id, liveness, CAST(seen_at AS TEXT), FALSE
  FROM obs_node
 WHERE seen_at >= (clock_timestamp() - make_interval(secs => 60))
UNION ALL
SELECT 'session', CAST(objid AS TEXT), CAST(pid AS TEXT), '', '', '', '', '', '', FALSE
  FROM pg_locks
 WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid = 1868723044
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- LookAtLeases
PREPARE "LookAtLeases" AS
SELECT 'lease', l.lock_key, l.region, l.client_id, o.node, o.name, o.boot_id, o.liveness, l.created_date, l.ended
  FROM obs_lock o
 CROSS JOIN LATERAL (
       SELECT CAST(i.lock_key AS TEXT), CAST(i.region AS TEXT), CAST(i.client_id AS TEXT), CAST(i.created_date AS TEXT), (i.expired_after < (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(o.ttl_ms / 1000.0 AS DOUBLE PRECISION) IS NOT NULL) AS ended
         FROM int_lock i
        WHERE o.lock_key = i.lock_key AND o.region = i.region AND o.term = i.client_id
        LIMIT 1) AS l
 WHERE o.region = ANY ($1::text[])
UNION ALL
SELECT 'self', '', CAST(pg_backend_pid() AS TEXT), '', '', '', '', '', '', FALSE;

