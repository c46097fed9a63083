package examine

import (
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/pgsession"
)

// examineSQL are the statements of the examiner; see [sqldb.Rendering.SQL] for their tokens.
type examineSQL struct {
	Clock, Server, Replication, Settings, Journal, Table, Elsewhere, Triggers, Rules, Excess, Rights, Sequence, Create, Path string
	Locks, BareLocks, Acquisitions, Members, Turns, Beyond, Pauses, Poison                                                   string
}

func newExamineSQL(db *sqldb.DB) *sqldb.Statements[examineSQL] {
	if db.Backend() == "sqlite" {
		return sqldb.NewStatements(db, sqliteExamineSQL)
	}
	return sqldb.NewStatements(db, postgresExamineSQL)
}

// Subscribers and the like stream through logical slots, and are left out of Replication; a
// backup does not stream.
//
// BareLocks is Locks where our own tables are not beside INT_LOCK. Both read the expiry where
// the table has one. No time.Time is infinite.
var postgresExamineSQL = examineSQL{
	Clock:  clockSQL,
	Server: `SELECT current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery()`,
	Replication: `
SELECT count(*) FILTER (WHERE r.state IN ('streaming', 'catchup')), count(*) FILTER (WHERE r.state IS NULL)
  FROM pg_stat_replication r
 WHERE NOT EXISTS (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')`,
	Settings: `
SELECT name, CASE WHEN name LIKE '%timeout' THEN reset_val ELSE setting END
  FROM pg_settings
 WHERE name IN ('fsync', 'synchronous_commit', 'synchronous_standby_names', 'full_page_writes', 'default_transaction_read_only', 'default_transaction_isolation',
                'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')`,
	Table: `
SELECT n.nspname::text, c.relpersistence = 'u', c.relrowsecurity,
       array_to_string(ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), ',')
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = to_regclass('int_lock')`,
	Elsewhere: `
SELECT n.nspname::text
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname = $1 AND c.relkind IN ('r', 'p') AND c.oid IS DISTINCT FROM to_regclass('int_lock')
 ORDER BY n.nspname`,
	Triggers: `
SELECT t.tgname || CASE WHEN ` + sqldb.PathlessTrigger + ` THEN ' (' || p.oid::regprocedure || ' has no search_path)' ELSE '' END
  FROM pg_trigger t
  JOIN pg_proc p ON p.oid = t.tgfoid
 WHERE t.tgrelid = to_regclass('int_lock') AND NOT t.tgisinternal
 ORDER BY t.tgname`,
	Rules: `SELECT rulename::text FROM pg_rewrite WHERE ev_class = to_regclass('int_lock') AND rulename <> '_RETURN' ORDER BY rulename`,
	Excess: `
SELECT r.rolname::text, w.name, w.has
  FROM pg_roles r,
       LATERAL (VALUES ('SUPERUSER', rolsuper), ('CREATEROLE', rolcreaterole), ('CREATEDB', rolcreatedb),
                       ('REPLICATION', rolreplication), ('BYPASSRLS', rolbypassrls)) AS w(name, has)
 WHERE r.rolname = current_user`,
	Rights: `
SELECT w || ' on ' || $1
  FROM unnest(string_to_array($2, ',')) AS w
 WHERE to_regclass($3) IS NOT NULL AND NOT has_table_privilege(to_regclass($3)::oid, w)`,
	Sequence: `
SELECT 'USAGE on sequence ' || $1
 WHERE to_regclass($2) IS NOT NULL AND NOT has_sequence_privilege(to_regclass($2)::oid, 'USAGE')
 UNION ALL
SELECT 'EXECUTE on function ' || $3
 WHERE to_regprocedure($4) IS NOT NULL AND NOT has_function_privilege(to_regprocedure($4)::oid, 'EXECUTE')`,
	Create: `
SELECT 'CREATE on schema ' || $1 WHERE NOT has_schema_privilege($1, 'CREATE')
 UNION ALL
SELECT 'ownership of ' || $2 FROM pg_class WHERE oid = to_regclass($2) AND NOT pg_has_role(relowner, 'USAGE')`,
	Path: pgsession.SchemasSQL(`ARRAY[to_regclass('int_lock'), to_regclass('` + sqldb.SchemaTable + `')]::oid[]`),
	Locks: `
SELECT l.lock_key, l.region, l.client_id,
       CASE WHEN l.created_date IS NOT NULL THEN greatest('0001-01-01', least('9999-12-31', l.created_date)) END,
       CASE WHEN ` + expirySQL + ` IS NOT NULL THEN greatest('0001-01-01', least('9999-12-31', ` + expirySQL + `)) END,
       {utc}, o.name, o.node, o.ttl_ms
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id`,
	BareLocks: `
SELECT l.lock_key, l.region, l.client_id,
       CASE WHEN l.created_date IS NOT NULL THEN greatest('0001-01-01', least('9999-12-31', l.created_date)) END,
       CASE WHEN ` + expirySQL + ` IS NOT NULL THEN greatest('0001-01-01', least('9999-12-31', ` + expirySQL + `)) END,
       {utc}, NULL, NULL, NULL
  FROM int_lock l`,
	Acquisitions: acquisitionsSQL, Members: membersSQL, Turns: turnsSQL, Beyond: beyondSQL,
	Pauses: pausesSQL, Poison: poisonSQL,
}

// expirySQL is NULL where the row l of INT_LOCK has no EXPIRED_AFTER.
const expirySQL = `CAST(to_jsonb(l) ->> 'expired_after' AS TIMESTAMP)`

var sqliteExamineSQL = examineSQL{
	Clock:   clockSQL,
	Server:  `SELECT sqlite_version()`,
	Journal: `PRAGMA journal_mode`,
	Table:   `SELECT lower(name) FROM pragma_table_info('int_lock')`,
	Locks: `
SELECT l.lock_key, l.region, l.client_id, l.created_date, NULL, {utc}, o.name, o.node, o.ttl_ms
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id`,
	BareLocks:    `SELECT lock_key, region, client_id, created_date, NULL, {utc}, NULL, NULL, NULL FROM int_lock`,
	Acquisitions: acquisitionsSQL, Members: membersSQL, Turns: turnsSQL, Beyond: beyondSQL,
	Pauses: pausesSQL, Poison: poisonSQL,
}

const (
	clockSQL        = `SELECT {now}`
	acquisitionsSQL = `SELECT lock_key, region, name, node, ttl_ms, acquired_at FROM obs_lock ORDER BY region, lock_key`
	membersSQL      = `
SELECT boot_id, name, version, config_hash, types, unreachable, sinks, started_at, seen_at, liveness
  FROM obs_node
 WHERE seen_at >= {ago $1}
 ORDER BY name, boot_id`
	turnsSQL  = `SELECT type, turn_at, last_node, last_outcome FROM obs_schedule ORDER BY type`
	beyondSQL = `
SELECT o.sink, o.stream, o.last_seq, c.last_seq
  FROM obs_sink_offset o
  JOIN obs_cursor c ON c.stream = o.stream
 WHERE o.last_seq > c.last_seq
 ORDER BY o.sink, o.stream`
	pausesSQL = `
SELECT stream, paused_at, paused_until, paused_by, pause_reason
  FROM obs_cursor
 WHERE paused AND (paused_until IS NULL OR paused_until > {now})
 ORDER BY stream`
	poisonSQL = `
SELECT d.stream, d.reason, count(*), c.last_seq = 0
  FROM obs_dead d
  JOIN obs_cursor c ON c.stream = d.stream
 GROUP BY d.stream, d.reason, c.last_seq
 ORDER BY d.stream, count(*) DESC, d.reason`
)
