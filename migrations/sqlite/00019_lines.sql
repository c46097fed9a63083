-- A caller that waits for several locks stands in the line of each. SQLite cannot change a
-- key: the table is made anew, and those who wait note themselves again within a second.

-- +goose Up
-- An older binary notes nobody any more: its callers wait without a place, try again after
-- their pauses, and are passed.
DROP TABLE obs_wait;
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
