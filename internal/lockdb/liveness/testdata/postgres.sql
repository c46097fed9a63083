-- Look
PREPARE "Look" AS
SELECT 'lease', l.lock_key, l.region, l.client_id, o.node, o.name, o.boot_id, o.liveness, l.created_date, l.ended
  FROM obs_lock o
 CROSS JOIN LATERAL (
       SELECT CAST(i.lock_key AS TEXT), CAST(i.region AS TEXT), CAST(i.client_id AS TEXT), CAST(i.created_date AS TEXT), (i.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => o.ttl_ms / 1000.0))) AS ended
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
       SELECT CAST(i.lock_key AS TEXT), CAST(i.region AS TEXT), CAST(i.client_id AS TEXT), CAST(i.created_date AS TEXT), (i.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => o.ttl_ms / 1000.0))) AS ended
         FROM int_lock i
        WHERE o.lock_key = i.lock_key AND o.region = i.region AND o.term = i.client_id
        LIMIT 1) AS l
 WHERE o.region = ANY ($1::text[])
UNION ALL
SELECT 'self', '', CAST(pg_backend_pid() AS TEXT), '', '', '', '', '', '', FALSE;

-- Free
PREPARE "Free" AS
WITH due AS (
  SELECT l.lock_key, l.region, l.client_id
    FROM int_lock l
    JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   WHERE l.lock_key = $1::char(36) AND l.region = $2::varchar AND l.client_id = $3::char(36)
     AND CAST(l.created_date AS TEXT) = $4::text
     AND o.boot_id = $5::text AND o.liveness = 'session'
     AND NOT EXISTS (SELECT 1 FROM pg_locks WHERE CAST(objid AS TEXT) = $6::text AND locktype = 'advisory' AND objsubid = 2 AND granted AND classid = 1868723044
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
     FOR UPDATE OF l SKIP LOCKED
), freed AS (
  DELETE FROM int_lock l
   USING due
   WHERE l.lock_key = due.lock_key AND l.region = due.region AND l.client_id = due.client_id
  RETURNING l.lock_key, l.region, l.client_id
)
UPDATE obs_lock o
   SET liveness = 'gone'
  FROM freed
 WHERE o.lock_key = freed.lock_key AND o.region = freed.region AND o.term = freed.client_id;

-- DeleteEnded
PREPARE "DeleteEnded" AS
DELETE FROM int_lock
 WHERE (lock_key, region) IN (
       SELECT lock_key, region FROM int_lock
        WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND set_config('synchronous_commit', 'off', TRUE) = 'off' FOR UPDATE SKIP LOCKED);

-- MarkLeases
PREPARE "MarkLeases" AS
UPDATE obs_lock
   SET liveness = $2
 WHERE boot_id = $1 AND liveness <> $2 AND liveness <> 'gone';

-- MarkNode
PREPARE "MarkNode" AS
UPDATE obs_node SET liveness = $2 WHERE boot_id = $1 AND liveness <> $2;

-- Absent
PREPARE "Absent" AS
SELECT boot_id, liveness, CAST(seen_at AS TEXT) FROM obs_node WHERE seen_at >= (clock_timestamp() - make_interval(secs => 60));

-- Present
PREPARE "Present" AS
SELECT CAST(objid AS TEXT), FALSE
  FROM pg_locks
 WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid = 1868723044
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
UNION ALL
SELECT '', TRUE WHERE pg_is_in_recovery();

-- Show
PREPARE "Show" AS
SELECT pg_backend_pid()::text, pg_is_in_recovery(), pg_try_advisory_lock_shared($1::int, $2::int);

-- OtherPID
PREPARE "OtherPID" AS
SELECT pg_backend_pid()::text;

