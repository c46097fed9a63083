-- What people and dashboards ask of the locks. The table is created empty. An older binary
-- notes no failures.

-- +goose Up
-- Acquisitions that failed because another had the lock, by its key and by what the caller
-- wanted to do. The processes add to it every few seconds.
CREATE TABLE obs_lock_failure (
  lock_key  CHAR(36)     NOT NULL,
  region    VARCHAR(100) NOT NULL,
  predicate TEXT         NOT NULL,
  subject   TEXT         NOT NULL,
  name      TEXT         NOT NULL,
  failures  INTEGER      NOT NULL,
  first_at  TEXT         NOT NULL,
  last_at   TEXT         NOT NULL,
  PRIMARY KEY (lock_key, region, predicate)
);

-- One row for each holder whose lease is not over, of all locks that have a descriptor.
-- The pollers' have the subject observer; locks of sinks and of the janitor have none.
-- A descriptor is split as JSON, [lock, mode, subject, predicate, ...].
CREATE VIEW obs_active_locks AS
SELECT region, name,
       replace(replace(parts ->> 2, '%3A', ':'), '%25', '%') AS subject,
       replace(replace(parts ->> 3, '%3A', ':'), '%25', '%') AS predicate,
       mode, node, term, fence, acquired_at, ttl_ms,
       CAST((julianday('now') - julianday(acquired_at)) * 86400000 AS INTEGER) AS age_ms,
       ttl_ms - CAST((julianday('now') - julianday(touched_at)) * 86400000 AS INTEGER) AS left_ms
  FROM (
    SELECT o.region, o.name, '[' || replace(json_quote(o.descriptor), ':', '","') || ']' AS parts, 'exclusive' AS mode, o.node, o.term, o.fence,
           o.acquired_at, o.ttl_ms, l.created_date AS touched_at
      FROM obs_lock o
      JOIN int_lock l ON l.lock_key = o.lock_key AND l.region = o.region AND l.client_id = o.term
     WHERE o.group_term <> o.term AND o.descriptor LIKE 'lock:%'
    UNION ALL
    SELECT h.region, h.name, '[' || replace(json_quote(h.descriptor), ':', '","') || ']', h.mode, h.node, h.term, h.fence,
           h.acquired_at, h.ttl_ms, h.touched_at
      FROM obs_hold h
      JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
     WHERE h.descriptor LIKE 'lock:%'
  ) held
 WHERE (julianday('now') - julianday(touched_at)) * 86400000 BETWEEN -2 * ttl_ms AND ttl_ms;

-- One row for each lock, by what is done under it: who holds it, who waits, and who did not
-- get it. Those who wait count for the predicate of the last one who had the lock.
CREATE VIEW obs_lock_stats AS
SELECT region, name, subject, predicate,
       sum(active) AS active, CAST(avg(ttl_ms) AS INTEGER) AS average_ttl_ms, max(age_ms) AS oldest_ms,
       sum(waiting) AS waiting, sum(failures) AS failures, min(first_at) AS first_failed_at, max(last_at) AS last_failed_at
  FROM (
    SELECT region, name, subject, predicate, 1 AS active, ttl_ms, age_ms, 0 AS waiting, 0 AS failures, NULL AS first_at, NULL AS last_at
      FROM obs_active_locks
    UNION ALL
    SELECT region, name, subject, predicate, 0, NULL, NULL, 0, failures, first_at, last_at
      FROM obs_lock_failure
    UNION ALL
    SELECT region, name, replace(replace(parts ->> 2, '%3A', ':'), '%25', '%'), replace(replace(parts ->> 3, '%3A', ':'), '%25', '%'),
           0, NULL, NULL, 1, 0, NULL, NULL
      FROM (
        SELECT o.region, o.name, '[' || replace(json_quote(o.descriptor), ':', '","') || ']' AS parts
          FROM obs_wait w
          JOIN obs_lock o ON o.lock_key = w.lock_key AND o.region = w.region
         WHERE o.descriptor LIKE 'lock:%' AND (julianday('now') - julianday(w.touched_at)) * 86400 BETWEEN -10 AND 5
      ) waits
  ) figures
 GROUP BY region, name, subject, predicate;
