-- The tables of a coordination database. Numbers below 20 were those of commits before the
-- first release: a database of theirs is refused, and theirs refuse this one.

-- +goose Up

-- Locks

-- The lock table that nodes of Spring Integration share. One that they have made stays as it
-- is, and nothing of ours hangs on it.
-- +goose StatementBegin
DO $$
BEGIN
  IF to_regclass('int_lock') IS NULL THEN
    CREATE TABLE INT_LOCK (
      LOCK_KEY     CHAR(36)     NOT NULL,
      REGION       VARCHAR(100) NOT NULL,
      CLIENT_ID    CHAR(36)     NOT NULL,
      CREATED_DATE TIMESTAMP    NOT NULL,
      CONSTRAINT INT_LOCK_PK PRIMARY KEY (LOCK_KEY, REGION)
    );
    CREATE INDEX IDX_INT_LOCK_CREATED ON INT_LOCK (CREATED_DATE);
  END IF;
END
$$;
-- +goose StatementEnd

-- Fencing tokens. One sequence for all keys: it survives the deletion of any lock's rows,
-- and a token is drawn only while the lock's row is locked.
CREATE SEQUENCE obs_fence;

-- What INT_LOCK cannot say of a lock. A row speaks of the present holder only while
-- term = INT_LOCK.CLIENT_ID; otherwise the holder is a stranger.
-- boot_id is the process that holds the lock. liveness says how others see whether it lives:
-- 'session' (an advisory lock that its session holds), '' (not at all: only the TTL ends its
-- lease), 'gone' (it was found dead, and the lease was taken from it) or 'released' (it was
-- released for later).
-- metadata is a JSON object of texts, or empty.
-- group_term = term while holders share the lock, who are in obs_hold. ttl_ms of such a row is
-- at least the longest of its holders, so that to others the lock looks held by one.
CREATE TABLE obs_lock (
  lock_key    CHAR(36)     NOT NULL,
  region      VARCHAR(100) NOT NULL,
  term        CHAR(36)     NOT NULL,
  group_term  CHAR(36)     NOT NULL DEFAULT '',
  fence       BIGINT       NOT NULL,
  name        TEXT         NOT NULL,
  node        TEXT         NOT NULL,
  descriptor  TEXT         NOT NULL,
  metadata    TEXT         NOT NULL DEFAULT '',
  ttl_ms      BIGINT       NOT NULL,
  acquired_at TIMESTAMPTZ  NOT NULL,
  boot_id     TEXT         NOT NULL DEFAULT '',
  liveness    TEXT         NOT NULL DEFAULT '',
  PRIMARY KEY (lock_key, region)
) WITH (fillfactor = 50);
CREATE INDEX obs_lock_region ON obs_lock (region);

-- Holders of a lock that they share. A row holds only while INT_LOCK.CLIENT_ID is its
-- group_term and its own time is not over.
CREATE TABLE obs_hold (
  lock_key    CHAR(36)     NOT NULL,
  region      VARCHAR(100) NOT NULL,
  term        CHAR(36)     NOT NULL,
  group_term  CHAR(36)     NOT NULL,
  mode        TEXT         NOT NULL,
  fence       BIGINT       NOT NULL,
  name        TEXT         NOT NULL,
  node        TEXT         NOT NULL,
  descriptor  TEXT         NOT NULL,
  metadata    TEXT         NOT NULL,
  ttl_ms      BIGINT       NOT NULL,
  acquired_at TIMESTAMPTZ  NOT NULL,
  touched_at  TIMESTAMPTZ  NOT NULL,
  PRIMARY KEY (lock_key, region, term)
) WITH (fillfactor = 50);

-- Callers that wait for a lock, one row for each lock of a set. No lock is granted past a row
-- that is ahead and was touched in the last seconds: one with a greater priority or, with the
-- same, a lesser ticket.
CREATE TABLE obs_wait (
  waiter     CHAR(36)     NOT NULL,
  lock_key   CHAR(36)     NOT NULL,
  region     VARCHAR(100) NOT NULL,
  mode       TEXT         NOT NULL,
  priority   INTEGER      NOT NULL,
  ticket     BIGINT       NOT NULL,
  node       TEXT         NOT NULL,
  touched_at TIMESTAMPTZ  NOT NULL,
  PRIMARY KEY (waiter, lock_key, region)
) WITH (fillfactor = 50);
CREATE INDEX obs_wait_lock ON obs_wait (lock_key, region);

-- Acquisitions that failed because another had the lock, by its key and by what the caller
-- wanted to do. The processes add to it every few seconds.
CREATE TABLE obs_lock_failure (
  lock_key  CHAR(36)     NOT NULL,
  region    VARCHAR(100) NOT NULL,
  predicate TEXT         NOT NULL,
  subject   TEXT         NOT NULL,
  name      TEXT         NOT NULL,
  failures  BIGINT       NOT NULL,
  first_at  TIMESTAMPTZ  NOT NULL,
  last_at   TIMESTAMPTZ  NOT NULL,
  PRIMARY KEY (lock_key, region, predicate)
) WITH (fillfactor = 50);

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
  started_at  TIMESTAMPTZ NOT NULL,
  seen_at     TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50);

-- The last turn of each observer type.
CREATE TABLE obs_schedule (
  type          TEXT        PRIMARY KEY,
  turn_at       TIMESTAMPTZ NOT NULL,
  last_node     TEXT        NOT NULL,
  last_started  TIMESTAMPTZ NOT NULL,
  last_finished TIMESTAMPTZ NOT NULL,
  last_outcome  TEXT        NOT NULL
) WITH (fillfactor = 50);

-- History of polls.
CREATE TABLE obs_poll (
  id           BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  type         TEXT        NOT NULL,
  stream       TEXT        NOT NULL,
  node         TEXT        NOT NULL,
  turn_at      TIMESTAMPTZ NOT NULL,
  started_at   TIMESTAMPTZ NOT NULL,
  finished_at  TIMESTAMPTZ NOT NULL,
  outcome      TEXT        NOT NULL,
  reason       TEXT        NOT NULL,
  row_count    BIGINT      NOT NULL,
  event_count  BIGINT      NOT NULL,
  poison_count BIGINT      NOT NULL
);
CREATE INDEX obs_poll_finished ON obs_poll (finished_at, id);

-- Secrets of accounts that a source has refused, so that all nodes leave them alone. digest
-- is of salt and secret: another one means that the secret was changed.
CREATE TABLE obs_account (
  account    TEXT        NOT NULL,
  salt       BYTEA       NOT NULL,
  digest     BYTEA       NOT NULL,
  refused_at TIMESTAMPTZ NOT NULL,
  node       TEXT        NOT NULL,
  reason     TEXT        NOT NULL,
  PRIMARY KEY (account, digest)
) WITH (fillfactor = 50);

-- Streams

-- One row a stream. It is locked by every commit, hands out seq, and carries the version that
-- a commit compares. Marks are empty, or NULL, until a commit writes them.
CREATE TABLE obs_cursor (
  stream_id         INTEGER     GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  stream            TEXT        NOT NULL UNIQUE,
  version           BIGINT      NOT NULL DEFAULT 0,
  commit_id         UUID,
  last_seq          BIGINT      NOT NULL DEFAULT 0,
  -- How often the stream was made to forget its rows. It is part of the ids of its events:
  -- version 1 of a row is another event after that.
  epoch             BIGINT      NOT NULL DEFAULT 0,
  row_count         BIGINT      NOT NULL DEFAULT 0,
  live_count        BIGINT      NOT NULL DEFAULT 0,

  -- How far the source was read: the marks after the last commit, and the low-water mark of
  -- the first one. first_reading says that the first reading is still under way.
  low_ts            TEXT        NOT NULL DEFAULT '',
  newest_ts         TEXT        NOT NULL DEFAULT '',
  start_ts          TEXT        NOT NULL DEFAULT '',
  first_reading     BOOLEAN     NOT NULL DEFAULT FALSE,
  -- How far the stream was behind after a poll that left rows behind, else 0.
  lag_ms            BIGINT      NOT NULL DEFAULT 0,

  -- The query by which the source was read.
  query_fingerprint TEXT        NOT NULL DEFAULT '',
  -- The definition of the observer by which the nodes poll, and when it was set.
  definition        TEXT        NOT NULL DEFAULT '',
  defined_at        TIMESTAMPTZ,

  -- What the last poll would not believe, and what the next one may do of it all the same.
  refusal           TEXT        NOT NULL DEFAULT '',
  accepted          TEXT        NOT NULL DEFAULT '',

  -- What else polls remember, such as the source's identity and its columns: a JSON object
  -- that no statement looks into.
  marks             TEXT        NOT NULL DEFAULT '{}',

  turn_at           TIMESTAMPTZ,
  last_ok_at        TIMESTAMPTZ,
  -- Failures since the last success, all of one class; empty for none.
  failures          INTEGER     NOT NULL DEFAULT 0,
  failure_class     TEXT        NOT NULL DEFAULT '',
  last_error        TEXT        NOT NULL DEFAULT '',
  retry_at          TIMESTAMPTZ,

  -- The last pause, which counts while paused is set. With an end, the pause is over at that
  -- time; the next turn of a node then clears paused.
  paused            BOOLEAN     NOT NULL DEFAULT FALSE,
  paused_at         TIMESTAMPTZ,
  paused_until      TIMESTAMPTZ,
  paused_by         TEXT        NOT NULL DEFAULT '',
  pause_reason      TEXT        NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

-- What was observed of each key: dedupe and change detection.
CREATE TABLE obs_observed (
  stream_id  INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  row_number BIGINT  NOT NULL,
  gone       BOOLEAN NOT NULL DEFAULT FALSE,
  key        TEXT    NOT NULL,
  row_hash   BYTEA   NOT NULL,
  PRIMARY KEY (stream_id, key)
) WITH (fillfactor = 90);

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
  seen        BYTEA       NOT NULL,
  row_count   BIGINT      NOT NULL,
  started_at  TIMESTAMPTZ NOT NULL,
  finished_at TIMESTAMPTZ,
  took_ms     BIGINT      NOT NULL
) WITH (fillfactor = 50);

-- Ranges that are read beside the polls. A step changes its row in the commit of its rows;
-- position_ts is where the next step begins.
CREATE TABLE obs_sweep (
  id          BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream      TEXT        NOT NULL,
  kind        TEXT        NOT NULL,
  state       TEXT        NOT NULL,
  from_ts     TEXT        NOT NULL,
  before_ts   TEXT        NOT NULL,
  position_ts TEXT        NOT NULL,
  row_count   BIGINT      NOT NULL DEFAULT 0,
  event_count BIGINT      NOT NULL DEFAULT 0,
  started_at  TIMESTAMPTZ NOT NULL,
  updated_at  TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX obs_sweep_running ON obs_sweep (stream, kind) WHERE state = 'running';

-- Poison rows, kept for a person. refused says that the row was part of a refusal: it is
-- shown, and the next poll judges it anew.
CREATE TABLE obs_dead (
  id       BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream   TEXT        NOT NULL,
  key      TEXT        NOT NULL,
  digest   BYTEA       NOT NULL,
  reason   TEXT        NOT NULL,
  raw      TEXT        NOT NULL,
  first_at TIMESTAMPTZ NOT NULL,
  last_at  TIMESTAMPTZ NOT NULL,
  refused  BOOLEAN     NOT NULL DEFAULT FALSE,
  UNIQUE (stream, digest)
);
CREATE INDEX obs_dead_last ON obs_dead (last_at);

-- Events and sinks

-- The event log: append only, gapless seq in each stream. snapshot says that the row was there
-- before its stream began.
CREATE TABLE obs_event (
  stream    TEXT        NOT NULL,
  seq       BIGINT      NOT NULL,
  event_id  UUID        NOT NULL,
  type      TEXT        NOT NULL,
  subject   TEXT        NOT NULL,
  version   INTEGER     NOT NULL,
  change    TEXT        NOT NULL,
  snapshot  BOOLEAN     NOT NULL DEFAULT FALSE,
  time      TIMESTAMPTZ NOT NULL,
  data      JSON        NOT NULL,
  logged_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (stream, seq)
);

-- How far each sink has stored each stream. The row without a stream carries the epoch of the
-- relay that feeds the sink, and why the sink stores nothing, on which node and since when;
-- empty when the last attempt went well.
CREATE TABLE obs_sink_offset (
  sink        TEXT        NOT NULL,
  stream      TEXT        NOT NULL,
  last_seq    BIGINT      NOT NULL,
  epoch       BIGINT      NOT NULL,
  last_error  TEXT        NOT NULL DEFAULT '',
  failed_node TEXT        NOT NULL DEFAULT '',
  failed_at   TIMESTAMPTZ,
  updated_at  TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (sink, stream)
) WITH (fillfactor = 50);

-- Operators

-- What an operator did.
CREATE TABLE obs_audit (
  id      BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      TIMESTAMPTZ NOT NULL,
  actor   TEXT        NOT NULL,
  action  TEXT        NOT NULL,
  subject TEXT        NOT NULL,
  detail  TEXT        NOT NULL
);
CREATE INDEX obs_audit_at ON obs_audit (at);

-- Views of the locks, for people and dashboards, and the function by which they read INT_LOCK:
-- a view that named it would keep its owner from changing it. All is made without the
-- search_path, in which others may have planted operators; the function has none but
-- pg_catalog, and the rights of its caller.
-- +goose StatementBegin
DO $$
DECLARE
  path  TEXT := pg_catalog.current_setting('search_path');
  ours  TEXT := pg_catalog.quote_ident(pg_catalog.current_schema());
  -- The path has the schema of INT_LOCK last. One that is in ours too is not the nodes'.
  locks TEXT := (SELECT pg_catalog.quote_ident(n.nspname)
                   FROM pg_catalog.unnest(pg_catalog.current_schemas(FALSE)) WITH ORDINALITY AS p (name, n)
                   JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) p.name
                   JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid AND c.relname OPERATOR(pg_catalog.=) 'int_lock'
                  ORDER BY p.n USING OPERATOR(pg_catalog.>)
                  LIMIT 1);
BEGIN
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog', TRUE);
  EXECUTE replace(replace($function$
    CREATE FUNCTION {ours}.obs_int_lock() RETURNS TABLE (lock_key TEXT, region TEXT, client_id TEXT, touched_at TIMESTAMPTZ)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
    BEGIN
      RETURN QUERY SELECT rtrim(l.lock_key::text), l.region::text, rtrim(l.client_id::text), l.created_date AT TIME ZONE 'UTC' FROM {locks}.int_lock l;
    END
    $body$
    $function$, '{ours}', ours), '{locks}', locks);

  -- One row for each holder whose lease is not over, of all locks that have a descriptor.
  -- The pollers' have the subject observer; locks of sinks and of the janitor have none.
  EXECUTE replace($view$
    CREATE VIEW {ours}.obs_active_locks AS
    SELECT region, name,
           replace(replace(split_part(descriptor, ':', 3), '%3A', ':'), '%25', '%') AS subject,
           replace(replace(split_part(descriptor, ':', 4), '%3A', ':'), '%25', '%') AS predicate,
           mode, node, term, fence, acquired_at, ttl_ms,
           (extract(epoch FROM clock_timestamp() - acquired_at) * 1000)::bigint AS age_ms,
           ttl_ms - (extract(epoch FROM clock_timestamp() - touched_at) * 1000)::bigint AS left_ms
      FROM (
        SELECT o.region, o.name, o.descriptor, 'exclusive' AS mode, o.node, o.term, o.fence, o.acquired_at, o.ttl_ms, l.touched_at
          FROM {ours}.obs_lock o
          JOIN {ours}.obs_int_lock() l ON l.lock_key = o.lock_key::text AND l.region = o.region::text AND l.client_id = o.term::text
         WHERE o.group_term <> o.term
        UNION ALL
        SELECT h.region, h.name, h.descriptor, h.mode, h.node, h.term, h.fence, h.acquired_at, h.ttl_ms, h.touched_at
          FROM {ours}.obs_hold h
          JOIN {ours}.obs_int_lock() l ON l.lock_key = h.lock_key::text AND l.region = h.region::text AND l.client_id = h.group_term::text
      ) held
     WHERE descriptor LIKE 'lock:%' AND touched_at >= clock_timestamp() - make_interval(secs => ttl_ms / 1000.0)
    $view$, '{ours}', ours);

  -- One row for each lock, by what is done under it: who holds it, who waits, and who did
  -- not get it. Those who wait count for the predicate of the last one who had the lock.
  EXECUTE replace($view$
    CREATE VIEW {ours}.obs_lock_stats AS
    SELECT region, name, subject, predicate,
           sum(active)::bigint AS active, avg(ttl_ms)::bigint AS average_ttl_ms, max(age_ms) AS oldest_ms,
           sum(waiting)::bigint AS waiting, sum(failures)::bigint AS failures, min(first_at) AS first_failed_at, max(last_at) AS last_failed_at
      FROM (
        SELECT region, name, subject, predicate, 1 AS active, ttl_ms, age_ms, 0 AS waiting, 0::bigint AS failures,
               NULL::timestamptz AS first_at, NULL::timestamptz AS last_at
          FROM {ours}.obs_active_locks
        UNION ALL
        SELECT region, name, subject, predicate, 0, NULL, NULL, 0, failures, first_at, last_at
          FROM {ours}.obs_lock_failure
        UNION ALL
        SELECT o.region, o.name, replace(replace(split_part(o.descriptor, ':', 3), '%3A', ':'), '%25', '%'),
               replace(replace(split_part(o.descriptor, ':', 4), '%3A', ':'), '%25', '%'), 0, NULL, NULL, 1, 0, NULL, NULL
          FROM {ours}.obs_wait w
          JOIN {ours}.obs_lock o ON o.lock_key = w.lock_key AND o.region = w.region
         WHERE o.descriptor LIKE 'lock:%' AND w.touched_at BETWEEN clock_timestamp() - interval '5 seconds' AND clock_timestamp() + interval '10 seconds'
      ) figures
     GROUP BY region, name, subject, predicate
    $view$, '{ours}', ours);
  PERFORM set_config('search_path', path, TRUE);
END
$$;
-- +goose StatementEnd
