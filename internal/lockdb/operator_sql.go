package lockdb

// operationSQL are the statements of [Operations] on a stream, and on the audit table. Reset
// makes the cursor accept whatever is read next, from where $3 says, and runs the four after
// it as its options say.
type operationSQL struct {
	Marks, Reset, CancelSweeps, ForgetGeneration, ForgetRows, ForgetObserved string

	Accept, Audit, Acts string
}

var operationTexts = operationSQL{
	Marks: `SELECT marks FROM obs_cursor WHERE stream = $1{update}`,
	Reset: `
UPDATE obs_cursor
   SET version = version + 1, query_fingerprint = '', refusal = '', accepted = '', failures = 0, retry_at = NULL, marks = $2,
       low_ts = CASE $3 WHEN 'cursor' THEN low_ts WHEN 'start' THEN start_ts ELSE '' END,
       newest_ts = CASE $3 WHEN 'cursor' THEN newest_ts WHEN 'start' THEN start_ts ELSE '' END
 WHERE stream = $1`,
	CancelSweeps:     `UPDATE obs_sweep SET state = 'cancelled', updated_at = {now} WHERE stream = $1 AND state = 'running'`,
	ForgetGeneration: `DELETE FROM obs_generation WHERE stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = $1)`,
	ForgetRows:       `UPDATE obs_cursor SET row_count = 0, live_count = 0, epoch = epoch + 1 WHERE stream = $1`,
	ForgetObserved:   `DELETE FROM obs_observed WHERE stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = $1)`,
	Accept: `
UPDATE obs_cursor
   SET accepted = refusal, version = version + 1, failures = 0, retry_at = NULL
 WHERE stream = $1 AND refusal = $2 AND refusal <> ''`,
	Audit: `INSERT INTO obs_audit (at, actor, action, subject, detail) VALUES ({now}, $1, $2, $3, $4)`,
	Acts: `
SELECT at, actor, action, subject, detail
  FROM obs_audit
 WHERE (CAST($1 AS DOUBLE PRECISION) = 0 OR at >= {past $1})
   AND (CAST($2 AS TEXT) = '' OR action = $2)
   AND (CAST($3 AS TEXT) = '' OR actor = $3)
   AND (CAST($4 AS TEXT) = '' OR substr(' ' || subject, 1 + length(subject) - length($4)) = ' ' || $4)
 ORDER BY id DESC
 LIMIT $5`,
}

// pauseSQL are the statements that pause streams and let them go on; ForgetAccount is run
// by Resume.
type pauseSQL struct{ Pause, Resume, ForgetAccount, EndPauses string }

var pauseTexts = pauseSQL{
	Pause: `
INSERT INTO obs_cursor AS c (stream, paused, paused_at, paused_until, paused_by, pause_reason)
VALUES ($1, TRUE, {now}, CASE WHEN CAST($2 AS DOUBLE PRECISION) > 0 THEN {in $2} END, $3, $4)
ON CONFLICT (stream) DO UPDATE
   SET paused = TRUE, version = c.version + 1, paused_at = CASE WHEN c.paused THEN c.paused_at ELSE excluded.paused_at END,
       paused_until = excluded.paused_until, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
 WHERE NOT c.paused OR c.paused_until IS NOT NULL AND (excluded.paused_until IS NULL OR excluded.paused_until > c.paused_until)`,
	Resume:        `UPDATE obs_cursor SET paused = FALSE, failures = 0, retry_at = NULL WHERE stream = $1 AND (paused OR failures > 0)`,
	ForgetAccount: `DELETE FROM obs_account WHERE account = $1`,
	EndPauses: `
UPDATE obs_cursor SET paused = FALSE WHERE stream {among $1} AND paused AND paused_until <= {now}
RETURNING stream, paused_by, paused_until`,
}

// sinkSQL are the statements that pause sinks, let them go on, and adopt what they hold.
type sinkSQL struct{ Pause, Resume, Adopt string }

var sinkTexts = sinkSQL{
	Pause: `
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at, paused_at, paused_by, pause_reason)
VALUES ($1, '', 0, 0, {now}, {now}, $2, $3)
ON CONFLICT (sink, stream) DO UPDATE
   SET paused_at = excluded.paused_at, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
 WHERE o.paused_at IS NULL`,
	Resume: `
UPDATE obs_sink_offset
   SET paused_at = NULL, paused_by = '', pause_reason = ''
 WHERE sink = $1 AND stream = '' AND paused_at IS NOT NULL`,
	Adopt: `
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at, adopted)
VALUES ($1, $2, 0, 0, {now}, TRUE)
ON CONFLICT (sink, stream) DO UPDATE SET adopted = TRUE
 WHERE NOT o.adopted`,
}

// deadSQL are the statements on the records of poison rows. DeleteDead is run by DropDead and
// SettleDead.
type deadSQL struct{ Dead, SettleDead, DeleteDead string }

// In DeleteDead the stream is an expression because SQLite would look up all its records
// otherwise.
var deadTexts = deadSQL{
	Dead: `
SELECT id, stream, key, reason, refused, first_at, last_at, CASE WHEN $7 THEN raw ELSE '' END
  FROM obs_dead
 WHERE ($1 OR id {numbers $2})
   AND ($3 OR stream {among $4})
   AND (CAST($5 AS TEXT) = '' OR key = $5)
   AND (CAST($6 AS DOUBLE PRECISION) = 0 OR last_at >= {past $6})
 ORDER BY last_at DESC, id DESC
 LIMIT $8`,
	SettleDead: `SELECT 1 WHERE ` + underLease,
	DeleteDead: `DELETE FROM obs_dead WHERE stream || '' = $1 AND id {numbers $2}`,
}

// parkedSQL are the statements on parked events, of the sink $1.
type parkedSQL struct{ Parked, Retry, Drop string }

var parkedTexts = parkedSQL{
	Parked: `
SELECT id, sink, stream, seq, CAST(event_id AS TEXT), subject, reason, parked_at, retry_at IS NOT NULL, CASE WHEN $9 THEN CAST(data AS TEXT) ELSE '' END
  FROM obs_parked
 WHERE ($1 OR id {numbers $2})
   AND ($3 OR sink {among $4})
   AND ($5 OR stream {among $6})
   AND (CAST($7 AS TEXT) = '' OR subject = $7)
   AND (CAST($8 AS DOUBLE PRECISION) = 0 OR parked_at >= {past $8})
 ORDER BY sink, stream, seq
 LIMIT $10`,
	Retry: `
UPDATE obs_parked
   SET retry_at = {now}
 WHERE sink = $1
   AND EXISTS (SELECT 1 FROM obs_parked k
                WHERE k.sink = $1 AND k.stream = obs_parked.stream AND k.subject = obs_parked.subject AND k.id {numbers $2})`,
	Drop: `DELETE FROM obs_parked WHERE sink = $1 AND id {numbers $2}`,
}

const sweepColumns = `id, stream, kind, state, from_ts, before_ts, position_ts, row_count, event_count, started_at, updated_at`

// sweepSQL are the statements of [Sweeps].
type sweepSQL struct{ Start, Latest, Cancel string }

var sweepTexts = sweepSQL{
	Start: `
INSERT INTO obs_sweep (stream, kind, state, from_ts, before_ts, position_ts, started_at, updated_at)
VALUES ($1, $2, 'running', $3, $4, $3, {now}, {now})
ON CONFLICT (stream, kind) WHERE state = 'running' DO NOTHING
RETURNING ` + sweepColumns,
	Latest: `
SELECT ` + sweepColumns + `
  FROM (SELECT s.*, row_number() OVER (PARTITION BY stream, kind
                                       ORDER BY CASE state WHEN 'running' THEN 0 ELSE 1 END, id DESC) AS rank
          FROM obs_sweep s
         WHERE stream = $1 OR CAST($1 AS TEXT) = '') AS latest
 WHERE rank = 1
 ORDER BY stream, kind`,
	Cancel: `
UPDATE obs_sweep SET state = 'cancelled', updated_at = {now} WHERE id = $1 AND state = 'running'
RETURNING stream, kind`,
}

// accountSQL are the statements of [Accounts].
type accountSQL struct{ Account, All, RefuseAccount string }

var accountTexts = accountSQL{
	Account: `
SELECT account, node, reason, salt, digest, refused_at
  FROM obs_account
 WHERE account = $1
 ORDER BY refused_at, digest`,
	All: `
SELECT account, node, reason, salt, digest, refused_at
  FROM obs_account
 ORDER BY account, refused_at, digest`,
	RefuseAccount: `
INSERT INTO obs_account (account, salt, digest, refused_at, node, reason)
VALUES ($1, $2, $3, {now}, $4, $5)
ON CONFLICT (account, digest) DO NOTHING`,
}
