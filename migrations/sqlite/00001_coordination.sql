-- The tables of a first installation. They are created empty: no lock is held
-- longer than a moment. Instants are UTC text of fixed width, so that their
-- order as text is their order in time.

-- +goose Up
CREATE TABLE IF NOT EXISTS INT_LOCK (
  LOCK_KEY     CHAR(36)     NOT NULL,
  REGION       VARCHAR(100) NOT NULL,
  CLIENT_ID    CHAR(36)     NOT NULL,
  CREATED_DATE TIMESTAMP    NOT NULL,
  CONSTRAINT INT_LOCK_PK PRIMARY KEY (LOCK_KEY, REGION)
);
CREATE INDEX IF NOT EXISTS IDX_INT_LOCK_CREATED ON INT_LOCK (CREATED_DATE);

-- Fencing tokens. One counter for all keys: it survives the deletion of any
-- lock's rows. A token is drawn in the transaction that takes the lock.
CREATE TABLE obs_fence (
  last_value INTEGER NOT NULL
);
INSERT INTO obs_fence (last_value) VALUES (0);

-- What INT_LOCK cannot say of a lock. A row speaks of the present holder only
-- while term = INT_LOCK.CLIENT_ID; otherwise the holder is a stranger.
CREATE TABLE obs_lock (
  lock_key    CHAR(36)     NOT NULL,
  region      VARCHAR(100) NOT NULL,
  term        CHAR(36)     NOT NULL,
  fence       INTEGER      NOT NULL,
  name        TEXT         NOT NULL,
  node        TEXT         NOT NULL,
  descriptor  TEXT         NOT NULL,
  ttl_ms      INTEGER      NOT NULL,
  acquired_at TEXT         NOT NULL,
  PRIMARY KEY (lock_key, region)
);

-- Who is alive. The key is random for each start; the name is a label.
CREATE TABLE obs_node (
  boot_id     TEXT        PRIMARY KEY,
  name        TEXT        NOT NULL,
  version     TEXT        NOT NULL,
  backend     TEXT        NOT NULL,
  config_hash TEXT        NOT NULL,
  types       TEXT        NOT NULL,
  unreachable TEXT        NOT NULL,
  sinks       TEXT        NOT NULL,
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

-- One row a stream. It is locked by every commit, hands out seq, and carries
-- the version that a commit compares.
CREATE TABLE obs_cursor (
  stream_id         INTEGER     PRIMARY KEY AUTOINCREMENT,
  stream            TEXT        NOT NULL UNIQUE,
  version           INTEGER     NOT NULL DEFAULT 0,
  commit_id         TEXT,
  last_seq          INTEGER     NOT NULL DEFAULT 0,
  low_ts            TEXT        NOT NULL DEFAULT '',
  newest_ts         TEXT        NOT NULL DEFAULT '',
  row_count         INTEGER     NOT NULL DEFAULT 0,
  live_count        INTEGER     NOT NULL DEFAULT 0,
  query_fingerprint TEXT        NOT NULL DEFAULT '',
  paused            BOOLEAN     NOT NULL DEFAULT FALSE,
  turn_at           TEXT,
  failures          INTEGER     NOT NULL DEFAULT 0,
  retry_at          TEXT,
  last_error        TEXT        NOT NULL DEFAULT '',
  last_ok_at        TEXT
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

-- The event log: append only, gapless seq in each stream.
CREATE TABLE obs_event (
  stream    TEXT        NOT NULL,
  seq       INTEGER     NOT NULL,
  event_id  TEXT        NOT NULL,
  type      TEXT        NOT NULL,
  subject   TEXT        NOT NULL,
  version   INTEGER     NOT NULL,
  change    TEXT        NOT NULL,
  time      TEXT        NOT NULL,
  data      TEXT        NOT NULL,
  logged_at TEXT        NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')),
  PRIMARY KEY (stream, seq)
) WITHOUT ROWID;

-- How far each sink has stored each stream. The row without a stream carries
-- the epoch of the relay that feeds the sink.
CREATE TABLE obs_sink_offset (
  sink       TEXT        NOT NULL,
  stream     TEXT        NOT NULL,
  last_seq   INTEGER     NOT NULL,
  epoch      INTEGER     NOT NULL,
  updated_at TEXT        NOT NULL,
  PRIMARY KEY (sink, stream)
);

-- Poison rows, kept for a person.
CREATE TABLE obs_dead (
  id       INTEGER     PRIMARY KEY AUTOINCREMENT,
  stream   TEXT        NOT NULL,
  key      TEXT        NOT NULL,
  digest   BLOB        NOT NULL,
  reason   TEXT        NOT NULL,
  raw      TEXT        NOT NULL,
  first_at TEXT        NOT NULL,
  last_at  TEXT        NOT NULL,
  UNIQUE (stream, digest)
);
CREATE INDEX obs_dead_last ON obs_dead (last_at);

-- History of polls.
CREATE TABLE obs_poll (
  id          INTEGER     PRIMARY KEY AUTOINCREMENT,
  type        TEXT        NOT NULL,
  stream      TEXT        NOT NULL,
  node        TEXT        NOT NULL,
  turn_at     TEXT        NOT NULL,
  started_at  TEXT        NOT NULL,
  finished_at TEXT        NOT NULL,
  outcome     TEXT        NOT NULL,
  reason      TEXT        NOT NULL,
  row_count   INTEGER     NOT NULL,
  event_count INTEGER     NOT NULL,
  poison_count INTEGER    NOT NULL
);
CREATE INDEX obs_poll_finished ON obs_poll (finished_at, id);

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
