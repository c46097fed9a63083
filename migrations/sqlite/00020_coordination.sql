-- The tables of a coordination database. Numbers below 20 were those of commits before the
-- first release: a database of theirs is refused, and theirs refuse this one. Instants are UTC
-- text of fixed width, so that their order as text is their order in time.

-- +goose Up

-- Locks

-- The lock table that nodes of Spring Integration share on PostgreSQL, in the same form.
CREATE TABLE IF NOT EXISTS INT_LOCK (
  LOCK_KEY     CHAR(36)     NOT NULL,
  REGION       VARCHAR(100) NOT NULL,
  CLIENT_ID    CHAR(36)     NOT NULL,
  CREATED_DATE TIMESTAMP    NOT NULL,
  CONSTRAINT INT_LOCK_PK PRIMARY KEY (LOCK_KEY, REGION)
);
CREATE INDEX IF NOT EXISTS IDX_INT_LOCK_CREATED ON INT_LOCK (CREATED_DATE);

-- Fencing tokens. One counter for all keys: it survives the deletion of any lock's rows. A
-- token is drawn in the transaction that takes the lock.
CREATE TABLE obs_fence (
  last_value INTEGER NOT NULL
);
INSERT INTO obs_fence (last_value) VALUES (0);

-- What INT_LOCK cannot say of a lock. A row speaks of the present holder only while
-- term = INT_LOCK.CLIENT_ID; otherwise the holder is a stranger.
-- boot_id is the process that holds the lock. liveness says how others see whether it lives:
-- 'flock' (a lock on a file of its own beside the database), '' (not at all: only the TTL ends
-- its lease), 'gone' (it was found dead, and the lease was taken from it) or 'released' (it was
-- released for later).
-- metadata is a JSON object of texts, or empty.
-- group_term = term while holders share the lock, who are in obs_hold. ttl_ms of such a row is
-- at least the longest of its holders, so that to others the lock looks held by one.
CREATE TABLE obs_lock (
  lock_key    CHAR(36)     NOT NULL,
  region      VARCHAR(100) NOT NULL,
  term        CHAR(36)     NOT NULL,
  group_term  CHAR(36)     NOT NULL DEFAULT '',
  fence       INTEGER      NOT NULL,
  name        TEXT         NOT NULL,
  node        TEXT         NOT NULL,
  descriptor  TEXT         NOT NULL,
  metadata    TEXT         NOT NULL DEFAULT '',
  ttl_ms      INTEGER      NOT NULL,
  acquired_at TEXT         NOT NULL,
  boot_id     TEXT         NOT NULL DEFAULT '',
  liveness    TEXT         NOT NULL DEFAULT '',
  PRIMARY KEY (lock_key, region)
);
CREATE INDEX obs_lock_region ON obs_lock (region);

-- Holders of a lock that they share. A row holds only while INT_LOCK.CLIENT_ID is its
-- group_term and its own time is not over.
CREATE TABLE obs_hold (
  lock_key    CHAR(36)     NOT NULL,
  region      VARCHAR(100) NOT NULL,
  term        CHAR(36)     NOT NULL,
  group_term  CHAR(36)     NOT NULL,
  mode        TEXT         NOT NULL,
  fence       INTEGER      NOT NULL,
  name        TEXT         NOT NULL,
  node        TEXT         NOT NULL,
  descriptor  TEXT         NOT NULL,
  metadata    TEXT         NOT NULL,
  ttl_ms      INTEGER      NOT NULL,
  acquired_at TEXT         NOT NULL,
  touched_at  TEXT         NOT NULL,
  PRIMARY KEY (lock_key, region, term)
);

-- Callers that wait for a lock, one row for each lock of a set. No lock is granted past a row
-- that is ahead and was touched in the last seconds: one with a greater priority or, with the
-- same, a lesser ticket.
CREATE TABLE obs_wait (
  waiter     CHAR(36)     NOT NULL,
  lock_key   CHAR(36)     NOT NULL,
  region     VARCHAR(100) NOT NULL,
  mode       TEXT         NOT NULL,
  priority   INTEGER      NOT NULL,
  ticket     INTEGER      NOT NULL,
  node       TEXT         NOT NULL,
  touched_at TEXT         NOT NULL,
  PRIMARY KEY (waiter, lock_key, region)
);
CREATE INDEX obs_wait_lock ON obs_wait (lock_key, region);

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

-- Nodes and turns

-- Who is alive. The key is random for each start; the name is a label. liveness is that of
-- obs_lock. outdated are the observers that the node leaves alone, because the others define
-- them in another way.
CREATE TABLE obs_node (
  boot_id     TEXT        PRIMARY KEY,
  name        TEXT        NOT NULL,
  version     TEXT        NOT NULL,
  backend     TEXT        NOT NULL,
  config_hash TEXT        NOT NULL,
  types       TEXT        NOT NULL,
  unreachable TEXT        NOT NULL,
  outdated    TEXT        NOT NULL DEFAULT '',
  sinks       TEXT        NOT NULL,
  liveness    TEXT        NOT NULL DEFAULT '',
  started_at  TEXT        NOT NULL,
  seen_at     TEXT        NOT NULL
);

-- The last turn of each observer type.
CREATE TABLE obs_schedule (
  type          TEXT        PRIMARY KEY,
  turn_at       TEXT        NOT NULL,
  last_node     TEXT        NOT NULL,
  last_started  TEXT        NOT NULL,
  last_finished TEXT        NOT NULL,
  last_outcome  TEXT        NOT NULL
);

-- History of polls.
CREATE TABLE obs_poll (
  id           INTEGER     PRIMARY KEY AUTOINCREMENT,
  type         TEXT        NOT NULL,
  stream       TEXT        NOT NULL,
  node         TEXT        NOT NULL,
  turn_at      TEXT        NOT NULL,
  started_at   TEXT        NOT NULL,
  finished_at  TEXT        NOT NULL,
  outcome      TEXT        NOT NULL,
  reason       TEXT        NOT NULL,
  row_count    INTEGER     NOT NULL,
  event_count  INTEGER     NOT NULL,
  poison_count INTEGER     NOT NULL
);
CREATE INDEX obs_poll_finished ON obs_poll (finished_at, id);

-- Secrets of accounts that a source has refused, so that all nodes leave them alone. digest
-- is of salt and secret: another one means that the secret was changed.
CREATE TABLE obs_account (
  account    TEXT        NOT NULL,
  salt       BLOB        NOT NULL,
  digest     BLOB        NOT NULL,
  refused_at TEXT        NOT NULL,
  node       TEXT        NOT NULL,
  reason     TEXT        NOT NULL,
  PRIMARY KEY (account, digest)
);

-- Streams

-- One row a stream. It is locked by every commit, hands out seq, and carries the version that
-- a commit compares. Marks are empty, or NULL, until a commit writes them.
CREATE TABLE obs_cursor (
  stream_id         INTEGER     PRIMARY KEY AUTOINCREMENT,
  stream            TEXT        NOT NULL UNIQUE,
  version           INTEGER     NOT NULL DEFAULT 0,
  commit_id         TEXT,
  last_seq          INTEGER     NOT NULL DEFAULT 0,
  -- How often the stream was made to forget its rows. It is part of the ids of its events:
  -- version 1 of a row is another event after that.
  epoch             INTEGER     NOT NULL DEFAULT 0,
  row_count         INTEGER     NOT NULL DEFAULT 0,
  live_count        INTEGER     NOT NULL DEFAULT 0,

  -- How far the source was read: the marks after the last commit, and the low-water mark of
  -- the first one. first_reading says that the first reading is still under way.
  low_ts            TEXT        NOT NULL DEFAULT '',
  newest_ts         TEXT        NOT NULL DEFAULT '',
  start_ts          TEXT        NOT NULL DEFAULT '',
  first_reading     BOOLEAN     NOT NULL DEFAULT FALSE,
  -- How far the stream was behind after a poll that left rows behind, else 0.
  lag_ms            INTEGER     NOT NULL DEFAULT 0,

  -- The query by which the source was read.
  query_fingerprint TEXT        NOT NULL DEFAULT '',
  -- The definition of the observer by which the nodes poll, and when it was set.
  definition        TEXT        NOT NULL DEFAULT '',
  defined_at        TEXT,

  -- What the last poll would not believe, and what the next one may do of it all the same.
  refusal           TEXT        NOT NULL DEFAULT '',
  accepted          TEXT        NOT NULL DEFAULT '',

  -- What else polls remember, such as the source's identity and its columns: a JSON object
  -- that no statement looks into.
  marks             TEXT        NOT NULL DEFAULT '{}',

  turn_at           TEXT,
  last_ok_at        TEXT,
  -- Failures since the last success, all of one class; empty for none.
  failures          INTEGER     NOT NULL DEFAULT 0,
  failure_class     TEXT        NOT NULL DEFAULT '',
  last_error        TEXT        NOT NULL DEFAULT '',
  retry_at          TEXT,

  -- The last pause, which counts while paused is set. With an end, the pause is over at that
  -- time; the next turn of a node then clears paused.
  paused            BOOLEAN     NOT NULL DEFAULT FALSE,
  paused_at         TEXT,
  paused_until      TEXT,
  paused_by         TEXT        NOT NULL DEFAULT '',
  pause_reason      TEXT        NOT NULL DEFAULT ''
);

-- What was observed of each key: dedupe and change detection.
CREATE TABLE obs_observed (
  stream_id  INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  row_number INTEGER NOT NULL,
  gone       BOOLEAN NOT NULL DEFAULT FALSE,
  key        TEXT    NOT NULL,
  row_hash   BLOB    NOT NULL,
  PRIMARY KEY (stream_id, key)
) WITHOUT ROWID;

-- How far the reading of all rows of a stream has come, where one poll has not enough time
-- for it. reading identifies what is read, key is where it goes on, and seen are the numbers
-- of the rows that were met, one bit each. complete says that all rows were read: what is left
-- is to look for those that are gone, and key is the last that was looked for. finished_at is
-- when the last reading ended, NULL while one has not, and took_ms for how long it lasted.
CREATE TABLE obs_generation (
  stream_id   INTEGER     PRIMARY KEY,
  reading     TEXT        NOT NULL,
  key         TEXT        NOT NULL,
  complete    BOOLEAN     NOT NULL,
  seen        BLOB        NOT NULL,
  row_count   INTEGER     NOT NULL,
  started_at  TEXT        NOT NULL,
  finished_at TEXT,
  took_ms     INTEGER     NOT NULL
);

-- Ranges that are read beside the polls. A step changes its row in the commit of its rows;
-- position_ts is where the next step begins.
CREATE TABLE obs_sweep (
  id          INTEGER     PRIMARY KEY AUTOINCREMENT,
  stream      TEXT        NOT NULL,
  kind        TEXT        NOT NULL,
  state       TEXT        NOT NULL,
  from_ts     TEXT        NOT NULL,
  before_ts   TEXT        NOT NULL,
  position_ts TEXT        NOT NULL,
  row_count   INTEGER     NOT NULL DEFAULT 0,
  event_count INTEGER     NOT NULL DEFAULT 0,
  started_at  TEXT        NOT NULL,
  updated_at  TEXT        NOT NULL
);
CREATE UNIQUE INDEX obs_sweep_running ON obs_sweep (stream, kind) WHERE state = 'running';

-- Poison rows, kept for a person. refused says that the row was part of a refusal: it is
-- shown, and the next poll judges it anew.
CREATE TABLE obs_dead (
  id       INTEGER     PRIMARY KEY AUTOINCREMENT,
  stream   TEXT        NOT NULL,
  key      TEXT        NOT NULL,
  digest   BLOB        NOT NULL,
  reason   TEXT        NOT NULL,
  raw      TEXT        NOT NULL,
  first_at TEXT        NOT NULL,
  last_at  TEXT        NOT NULL,
  refused  BOOLEAN     NOT NULL DEFAULT FALSE,
  UNIQUE (stream, digest)
);
CREATE INDEX obs_dead_last ON obs_dead (last_at);

-- Events and sinks

-- The event log: append only, gapless seq in each stream. snapshot says that the row was there
-- before its stream began.
CREATE TABLE obs_event (
  stream    TEXT        NOT NULL,
  seq       INTEGER     NOT NULL,
  event_id  TEXT        NOT NULL,
  type      TEXT        NOT NULL,
  subject   TEXT        NOT NULL,
  version   INTEGER     NOT NULL,
  change    TEXT        NOT NULL,
  snapshot  BOOLEAN     NOT NULL DEFAULT FALSE,
  time      TEXT        NOT NULL,
  data      TEXT        NOT NULL,
  logged_at TEXT        NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')),
  PRIMARY KEY (stream, seq)
) WITHOUT ROWID;

-- How far each sink has stored each stream. The row without a stream carries the epoch of the
-- relay that feeds the sink, and why the sink stores nothing, on which node and since when;
-- empty when the last attempt went well.
CREATE TABLE obs_sink_offset (
  sink        TEXT        NOT NULL,
  stream      TEXT        NOT NULL,
  last_seq    INTEGER     NOT NULL,
  epoch       INTEGER     NOT NULL,
  last_error  TEXT        NOT NULL DEFAULT '',
  failed_node TEXT        NOT NULL DEFAULT '',
  failed_at   TEXT,
  updated_at  TEXT        NOT NULL,
  PRIMARY KEY (sink, stream)
);

-- Operators

-- What an operator did.
CREATE TABLE obs_audit (
  id      INTEGER     PRIMARY KEY AUTOINCREMENT,
  at      TEXT        NOT NULL,
  actor   TEXT        NOT NULL,
  action  TEXT        NOT NULL,
  subject TEXT        NOT NULL,
  detail  TEXT        NOT NULL
);
CREATE INDEX obs_audit_at ON obs_audit (at);

-- Views of the locks, for people and dashboards.

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
 WHERE (julianday('now') - julianday(touched_at)) * 86400000 <= ttl_ms;

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
