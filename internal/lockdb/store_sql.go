package lockdb

// storeSQL are the statements of [Store] beside the commit. LockCursor and Outdate are run by
// fate.
type storeSQL struct{ Cursor, Create, Observed, Between, Live, Generation, Buried, LockCursor, Outdate string }

// Observed, Between and Live have the cursor as a row without a key: a server that is behind
// is behind with both, the rows and the cursor, and its rows must not pass for those of another.
//
// Observed looks each key up in the index, and OFFSET 0 keeps the planner of PostgreSQL from
// doing better: for some thousand keys it prefers to read all that was ever observed, be it by
// "= ANY" or by a join, so that a chunk would cost the more the longer the stream is (measured
// at 0.9 million rows: 4 ms, not 78). So does Buried.
var postgresStoreSQL = storeSQL{
	Cursor: cursorSQL, Create: createSQL, Between: betweenSQL, Live: liveSQL, Generation: generationSQL, LockCursor: lockCursorSQL, Outdate: outdateSQL,
	Observed: `
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = $1
 UNION ALL
SELECT o.*
  FROM unnest($2::text[]) AS u(key)
 CROSS JOIN LATERAL (
       SELECT key, row_hash, version, row_number, gone
         FROM obs_observed
        WHERE stream_id = $1 AND key = u.key
       OFFSET 0) AS o`,
	Buried: `
SELECT d.*
  FROM unnest($2::text[]) AS u(digest)
 CROSS JOIN LATERAL (
       SELECT digest, refused, last_at > {ago $3::float8}
         FROM obs_dead
        WHERE stream = $1 AND digest = decode(u.digest, 'hex')
       OFFSET 0) AS d`,
}

var sqliteStoreSQL = storeSQL{
	Cursor: cursorSQL, Create: createSQL, Between: betweenSQL, Live: liveSQL, Generation: generationSQL, LockCursor: lockCursorSQL, Outdate: outdateSQL,
	Observed: `
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = $1
 UNION ALL
SELECT key, row_hash, version, row_number, gone
  FROM obs_observed
 WHERE stream_id = $1 AND key IN (SELECT value FROM json_each($2))`,
	Buried: `
SELECT digest, refused, last_at > {ago $3}
  FROM obs_dead
 WHERE stream = $1 AND digest IN (SELECT unhex(value) FROM json_each($2))`,
}

const (
	cursorSQL = `
SELECT stream_id, stream, version, epoch, last_seq, row_count, live_count, low_ts, newest_ts, first_reading,
       query_fingerprint, definition, defined_at, refusal, accepted, marks
  FROM obs_cursor
 WHERE stream = $1`

	createSQL = `
INSERT INTO obs_cursor (stream) SELECT $5 WHERE ` + underLease + `
ON CONFLICT (stream) DO NOTHING`

	betweenSQL = `
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = $1
 UNION ALL
SELECT *
  FROM (SELECT key, row_hash, version, row_number, gone
          FROM obs_observed
         WHERE stream_id = $1
           AND key BETWEEN CASE WHEN CAST($2 AS TEXT) < $3 THEN $2 ELSE $3 END AND CASE WHEN CAST($2 AS TEXT) < $3 THEN $3 ELSE $2 END
         ORDER BY key
         LIMIT $4) AS page`

	liveSQL = `
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = $1
 UNION ALL
SELECT *
  FROM (SELECT key, row_hash, version, row_number, gone
          FROM obs_observed
         WHERE stream_id = $1 AND key > $2 AND NOT gone
         ORDER BY key
         LIMIT $3) AS page
 ORDER BY key`

	generationSQL = `
SELECT reading, key, complete, seen, row_count, started_at, finished_at, took_ms
  FROM obs_generation
 WHERE stream_id = $1`

	lockCursorSQL = `SELECT CAST(commit_id AS TEXT) FROM obs_cursor WHERE stream_id = $1{update}`

	outdateSQL = `
UPDATE obs_cursor
   SET version = version + 1, commit_id = NULL
 WHERE stream_id = $5 AND version = $6 AND ` + underLease
)
