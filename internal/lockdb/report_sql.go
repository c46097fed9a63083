package lockdb

// reportSQL are the statements of a report that no part of [DB] has.
type reportSQL struct{ Recent, Parked, Generations, WentBack, Past string }

var reportTexts = reportSQL{
	Recent: `
SELECT stream, count(*), sum(CASE WHEN outcome = $2 THEN 0 ELSE 1 END), CAST(sum(row_count) AS BIGINT), CAST(sum(event_count) AS BIGINT), CAST(sum(poison_count) AS BIGINT)
  FROM obs_poll
 WHERE finished_at >= {past $1}
 GROUP BY stream`,
	Parked: `SELECT sink, count(*), min(parked_at) FROM obs_parked GROUP BY sink ORDER BY sink`,
	Generations: `
SELECT c.stream, g.row_count, c.live_count, g.started_at, g.finished_at, g.took_ms
  FROM obs_generation g
  JOIN obs_cursor c ON c.stream_id = g.stream_id
 WHERE g.reading NOT LIKE 'apart %'
 ORDER BY c.stream`,
	WentBack: `
SELECT at, actor, subject, detail
  FROM obs_audit
 WHERE action = $1 AND at >= {ago $2}
 ORDER BY id DESC
 LIMIT $3`,
	Past: `
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, poison_count
  FROM obs_poll
 WHERE finished_at >= $1
 ORDER BY finished_at DESC, id DESC
 LIMIT $2`,
}
