-- Those who wait for a lock. The table is created empty.

-- +goose Up
-- No lock is granted past a row that is ahead, and was touched in the last seconds: one with
-- a greater priority or, with the same, a lesser ticket. An older binary does not look.
CREATE TABLE obs_wait (
  waiter     CHAR(36)     PRIMARY KEY,
  lock_key   CHAR(36)     NOT NULL,
  region     VARCHAR(100) NOT NULL,
  mode       TEXT         NOT NULL,
  priority   INTEGER      NOT NULL,
  ticket     INTEGER      NOT NULL,
  node       TEXT         NOT NULL,
  touched_at TEXT         NOT NULL
);
CREATE INDEX obs_wait_lock ON obs_wait (lock_key, region);
