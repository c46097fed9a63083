package liveness

import "github.com/observerd/observerd/internal/lockdb/sqldb"

// presenceSQL are the statements of the presences, the [Monitor] and [Dead]; see
// [sqldb.Rendering.SQL] for their tokens.
type presenceSQL struct{ Look, LookAtLeases, Free, NoteDead, DeleteEnded, MarkLeases, MarkNode, Absent, Present, Show, OtherPID string }

func newPresenceSQL(db *sqldb.DB) *sqldb.Statements[presenceSQL] {
	if db.Backend() == "sqlite" {
		return sqldb.NewStatements(db, sqlitePresenceSQL)
	}
	return sqldb.NewStatements(db, postgresPresenceSQL)
}

const (
	// recentNodes is about nodes that have beaten lately. The schedule forgets nodes sooner.
	recentNodes = `seen_at >= {ago 60}`
	// advisoryLocks are ours in pg_locks, which every role may read: those of our
	// class (see livenessClass) in the form with two keys, which is objsubid 2.
	advisoryLocks = `locktype = 'advisory' AND objsubid = 2 AND granted AND classid = 1868723044
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
)

// LookAtLeases returns the leases of the regions in a list, $1, and our own session; Look also the
// nodes, and the sessions that hold an advisory lock of ours. They are planned once, without the
// regions, of which the planner would take any number for most of the rows: the limit, which
// leaves nothing out, keeps it from another way than by the key, lease by lease. Free deletes a
// row of INT_LOCK as it was seen, and notes why; it leaves a row alone that is just being
// renewed: its holder lives. Present returns the keys of the sessions that hold an advisory lock
// of ours, and whether this is a standby, on which they cannot be seen.
var postgresPresenceSQL = presenceSQL{
	LookAtLeases: postgresLeasesSQL,
	Look: postgresLeasesSQL + `
UNION ALL
SELECT 'node', '', '', '', name, config_hash, boot_id, liveness, CAST(seen_at AS TEXT), FALSE
  FROM obs_node
 WHERE ` + recentNodes + `
UNION ALL
SELECT 'session', CAST(objid AS TEXT), CAST(pid AS TEXT), '', '', '', '', '', '', FALSE
  FROM pg_locks
 WHERE ` + advisoryLocks,
	Free: `
WITH due AS (
  SELECT l.lock_key, l.region, l.client_id
    FROM int_lock l
    JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   WHERE l.lock_key = $1::char(36) AND l.region = $2::varchar AND l.client_id = $3::char(36)
     AND CAST(l.created_date AS TEXT) = $4::text
     AND o.boot_id = $5::text AND o.liveness = '` + BySession + `'
     AND NOT EXISTS (SELECT 1 FROM pg_locks WHERE CAST(objid AS TEXT) = $6::text AND ` + advisoryLocks + `)
     FOR UPDATE OF l SKIP LOCKED
), freed AS (
  DELETE FROM int_lock l
   USING due
   WHERE l.lock_key = due.lock_key AND l.region = due.region AND l.client_id = due.client_id
  RETURNING l.lock_key, l.region, l.client_id
)
UPDATE obs_lock o
   SET liveness = '` + FoundDead + `'
  FROM freed
 WHERE o.lock_key = freed.lock_key AND o.region = freed.region AND o.term = freed.client_id`,
	DeleteEnded: ReleaseSQL, MarkLeases: markLeasesSQL, MarkNode: markNodeSQL, Absent: absentSQL,
	Present: `
SELECT CAST(objid AS TEXT), FALSE
  FROM pg_locks
 WHERE ` + advisoryLocks + `
UNION ALL
SELECT '', TRUE WHERE pg_is_in_recovery()`,
	Show:     `SELECT pg_backend_pid()::text, pg_is_in_recovery(), pg_try_advisory_lock_shared($1::int, $2::int)`,
	OtherPID: `SELECT pg_backend_pid()::text`,
}

const postgresLeasesSQL = `
SELECT 'lease', l.lock_key, l.region, l.client_id, o.node, o.name, o.boot_id, o.liveness, l.created_date, l.ended
  FROM obs_lock o
 CROSS JOIN LATERAL (
       SELECT CAST(i.lock_key AS TEXT), CAST(i.region AS TEXT), CAST(i.client_id AS TEXT), CAST(i.created_date AS TEXT), {ended i o.ttl_ms / 1000.0} AS ended
         FROM int_lock i
        WHERE o.lock_key = i.lock_key AND o.region = i.region AND o.term = i.client_id
        LIMIT 1) AS l
 WHERE o.region {among $1}
UNION ALL
SELECT 'self', '', CAST(pg_backend_pid() AS TEXT), '', '', '', '', '', '', FALSE`

var sqlitePresenceSQL = presenceSQL{
	Look: `
SELECT 'lease', CAST(l.lock_key AS TEXT), CAST(l.region AS TEXT), CAST(l.client_id AS TEXT), o.node, o.name, o.boot_id, o.liveness,
       CAST(l.created_date AS TEXT), {ended l o.ttl_ms / 1000.0}
  FROM obs_lock o
  JOIN int_lock l ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE o.region {among $1}
UNION ALL
SELECT 'node', '', '', '', name, '', boot_id, liveness, CAST(seen_at AS TEXT), FALSE
  FROM obs_node
 WHERE ` + recentNodes,
	Free: `
DELETE FROM int_lock AS l
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND CAST(created_date AS TEXT) = $4
   AND EXISTS (SELECT 1 FROM obs_lock o
                WHERE o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
                  AND o.boot_id = $5 AND o.liveness = '` + ByFlock + `')`,
	NoteDead:    `UPDATE obs_lock SET liveness = '` + FoundDead + `' WHERE lock_key = $1 AND region = $2 AND term = $3`,
	DeleteEnded: ReleaseSQL, MarkLeases: markLeasesSQL, MarkNode: markNodeSQL, Absent: absentSQL,
}

// ReleaseSQL deletes the row of a term, unless another client has locked it. It does not wait for
// the disk: a row that comes back with a server that died is deleted by [Monitor], or ends with its TTL.
const ReleaseSQL = `
DELETE FROM int_lock
 WHERE (lock_key, region) IN (
       SELECT lock_key, region FROM int_lock
        WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND {unsynced}{skip})`

// MarkLeases leaves the rows of leases as they are that were taken from us.
const (
	markLeasesSQL = `
UPDATE obs_lock
   SET liveness = $2
 WHERE boot_id = $1 AND liveness <> $2 AND liveness <> '` + FoundDead + `'`
	markNodeSQL = `UPDATE obs_node SET liveness = $2 WHERE boot_id = $1 AND liveness <> $2`
	absentSQL   = `SELECT boot_id, liveness, CAST(seen_at AS TEXT) FROM obs_node WHERE ` + recentNodes
)
