-- Locks that several hold at once. The table is created empty, and the column has a
-- constant default: nothing is rewritten, and the exclusive lock lasts a moment.

-- +goose Up
-- group_term is INT_LOCK.CLIENT_ID while holders share the lock, who are in obs_hold. It
-- speaks of the present row only while group_term = term. ttl_ms of such a row is at least
-- the longest of its holders, so that to all others the lock looks held by one.
-- An older binary takes such a lock when that time is over.
ALTER TABLE obs_lock ADD COLUMN group_term CHAR(36) NOT NULL DEFAULT '';

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
  boot_id     TEXT         NOT NULL,
  liveness    TEXT         NOT NULL,
  PRIMARY KEY (lock_key, region, term)
) WITH (fillfactor = 50);
