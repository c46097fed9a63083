-- Clock
PREPARE "Clock" AS
SELECT clock_timestamp();

-- Server
PREPARE "Server" AS
SELECT current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery();

-- Replication
PREPARE "Replication" AS
SELECT count(*) FILTER (WHERE r.state IN ('streaming', 'catchup')), count(*) FILTER (WHERE r.state IS NULL)
  FROM pg_stat_replication r
 WHERE NOT EXISTS (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical');

-- Settings
PREPARE "Settings" AS
SELECT name, CASE WHEN name LIKE '%timeout' THEN reset_val ELSE setting END
  FROM pg_settings
 WHERE name IN ('fsync', 'synchronous_commit', 'synchronous_standby_names', 'full_page_writes', 'default_transaction_read_only', 'default_transaction_isolation',
                'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout');

-- Table
PREPARE "Table" AS
SELECT n.nspname::text, c.relpersistence = 'u', c.relrowsecurity,
       array_to_string(ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), ',')
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = to_regclass('int_lock');

-- Elsewhere
PREPARE "Elsewhere" AS
SELECT n.nspname::text
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname = $1 AND c.relkind IN ('r', 'p') AND c.oid IS DISTINCT FROM to_regclass('int_lock')
 ORDER BY n.nspname;

-- Triggers
PREPARE "Triggers" AS
SELECT t.tgname || CASE WHEN NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) AS c (setting) WHERE starts_with(c.setting, 'search_path='))
   AND p.prolang NOT IN (SELECT l.oid FROM pg_language l WHERE l.lanname IN ('c', 'internal')) THEN ' (' || p.oid::regprocedure || ' has no search_path)' ELSE '' END
  FROM pg_trigger t
  JOIN pg_proc p ON p.oid = t.tgfoid
 WHERE t.tgrelid = to_regclass('int_lock') AND NOT t.tgisinternal
 ORDER BY t.tgname;

-- Rules
PREPARE "Rules" AS
SELECT rulename::text FROM pg_rewrite WHERE ev_class = to_regclass('int_lock') AND rulename <> '_RETURN' ORDER BY rulename;

-- Excess
PREPARE "Excess" AS
SELECT r.rolname::text, w.name, w.has
  FROM pg_roles r,
       LATERAL (VALUES ('SUPERUSER', rolsuper), ('CREATEROLE', rolcreaterole), ('CREATEDB', rolcreatedb),
                       ('REPLICATION', rolreplication), ('BYPASSRLS', rolbypassrls)) AS w(name, has)
 WHERE r.rolname = current_user;

-- Rights
PREPARE "Rights" AS
SELECT w || ' on ' || $1
  FROM unnest(string_to_array($2, ',')) AS w
 WHERE to_regclass($3) IS NOT NULL AND NOT has_table_privilege(to_regclass($3)::oid, w);

-- Sequence
PREPARE "Sequence" AS
SELECT 'USAGE on sequence ' || $1
 WHERE to_regclass($2) IS NOT NULL AND NOT has_sequence_privilege(to_regclass($2)::oid, 'USAGE')
 UNION ALL
SELECT 'EXECUTE on function ' || $3
 WHERE to_regprocedure($4) IS NOT NULL AND NOT has_function_privilege(to_regprocedure($4)::oid, 'EXECUTE');

-- Create
PREPARE "Create" AS
SELECT 'CREATE on schema ' || $1 WHERE NOT has_schema_privilege($1, 'CREATE')
 UNION ALL
SELECT 'ownership of ' || $2 FROM pg_class WHERE oid = to_regclass($2) AND NOT pg_has_role(relowner, 'USAGE');

-- Path
PREPARE "Path" AS
WITH friend AS (
  SELECT r.oid
    FROM pg_roles r, pg_database d
   WHERE d.datname = current_database()
     AND (r.rolname = current_user OR pg_has_role(r.oid, d.datdba, 'MEMBER')
          OR r.oid IN (SELECT c.relowner FROM pg_class c WHERE c.oid = ANY (ARRAY[to_regclass('int_lock'), to_regclass('obs_migration')]::oid[])))
), path AS (
  SELECT n.oid, n.nspname, n.nspowner, n.nspacl, p.n, owner.strange,
         ARRAY(SELECT r.oid
                 FROM pg_roles r
                WHERE r.oid IN (SELECT oid FROM friend) OR NOT owner.strange AND pg_has_role(r.oid, n.nspowner, 'MEMBER')) AS trusted
    FROM unnest($1::text[]) WITH ORDINALITY AS p (name, n)
    JOIN pg_namespace n ON n.nspname = p.name::name
    JOIN pg_roles o ON o.oid = n.nspowner
    JOIN pg_roles me ON me.rolname = current_user,
         LATERAL (SELECT o.rolname <> 'pg_database_owner' AND o.oid NOT IN (SELECT oid FROM friend)
                     AND (me.rolsuper OR NOT pg_has_role(o.oid, 'MEMBER'))) AS owner (strange)
), held AS (
  SELECT path.oid, format('%s of %s', 'operator ' || o.oid::regoperator, quote_ident(pg_get_userbyid(o.oprowner))) AS what, o.oprowner AS owner
    FROM path JOIN pg_operator o ON o.oprnamespace = path.oid
  UNION ALL
  SELECT path.oid, format('%s of %s', 'function ' || f.oid::regprocedure, quote_ident(pg_get_userbyid(f.proowner))), f.proowner
    FROM path JOIN pg_proc f ON f.pronamespace = path.oid
)
SELECT quote_ident(path.nspname),
       CASE WHEN path.strange THEN quote_ident(pg_get_userbyid(path.nspowner)) ELSE '' END,
       to_json(ARRAY(SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
               FROM aclexplode(coalesce(path.nspacl, acldefault('n', path.nspowner))) a
              WHERE a.privilege_type = 'CREATE' AND a.grantee <> path.nspowner AND a.grantee <> ALL (path.trusted)
              ORDER BY 1))::text,
       to_json(ARRAY(SELECT held.what FROM held
              WHERE held.oid = path.oid AND held.owner <> ALL (path.trusted)
              ORDER BY 1 LIMIT 5))::text
  FROM path
 ORDER BY path.n;

-- Locks
PREPARE "Locks" AS
SELECT l.lock_key, l.region, l.client_id,
       CASE WHEN l.created_date IS NOT NULL THEN greatest('0001-01-01', least('9999-12-31', l.created_date)) END,
       CASE WHEN CAST(to_jsonb(l) ->> 'expired_after' AS TIMESTAMP) IS NOT NULL THEN greatest('0001-01-01', least('9999-12-31', CAST(to_jsonb(l) ->> 'expired_after' AS TIMESTAMP))) END,
       (clock_timestamp() AT TIME ZONE 'UTC'), o.name, o.node, o.ttl_ms
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id;

-- BareLocks
PREPARE "BareLocks" AS
SELECT l.lock_key, l.region, l.client_id,
       CASE WHEN l.created_date IS NOT NULL THEN greatest('0001-01-01', least('9999-12-31', l.created_date)) END,
       CASE WHEN CAST(to_jsonb(l) ->> 'expired_after' AS TIMESTAMP) IS NOT NULL THEN greatest('0001-01-01', least('9999-12-31', CAST(to_jsonb(l) ->> 'expired_after' AS TIMESTAMP))) END,
       (clock_timestamp() AT TIME ZONE 'UTC'), NULL, NULL, NULL
  FROM int_lock l;

-- Acquisitions
PREPARE "Acquisitions" AS
SELECT lock_key, region, name, node, ttl_ms, acquired_at FROM obs_lock ORDER BY region, lock_key;

-- Members
PREPARE "Members" AS
SELECT boot_id, name, version, config_hash, types, unreachable, sinks, started_at, seen_at, liveness
  FROM obs_node
 WHERE seen_at >= (clock_timestamp() - make_interval(secs => $1))
 ORDER BY name, boot_id;

-- Turns
PREPARE "Turns" AS
SELECT type, turn_at, last_node, last_outcome FROM obs_schedule ORDER BY type;

-- Beyond
PREPARE "Beyond" AS
SELECT o.sink, o.stream, o.last_seq, c.last_seq
  FROM obs_sink_offset o
  JOIN obs_cursor c ON c.stream = o.stream
 WHERE o.last_seq > c.last_seq
 ORDER BY o.sink, o.stream;

-- Pauses
PREPARE "Pauses" AS
SELECT stream, paused_at, paused_until, paused_by, pause_reason
  FROM obs_cursor
 WHERE paused AND (paused_until IS NULL OR paused_until > clock_timestamp())
 ORDER BY stream;

-- Poison
PREPARE "Poison" AS
SELECT d.stream, d.reason, count(*), c.last_seq = 0
  FROM obs_dead d
  JOIN obs_cursor c ON c.stream = d.stream
 GROUP BY d.stream, d.reason, c.last_seq
 ORDER BY d.stream, count(*) DESC, d.reason;

