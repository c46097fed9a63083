-- How the death of a lock's holder can be seen. Both tables are small; the
-- columns have constant defaults, so nothing is rewritten and the exclusive
-- locks last a moment.

-- +goose Up
-- boot_id is the process that holds the lock. liveness says how others see
-- whether it lives: 'session' (an advisory lock that its session holds), '' (not
-- at all: only the TTL ends its lease), or 'gone' (it was found dead, and the
-- lease was taken from it). Both speak of the present row only while
-- boot_term = term: an older binary takes the lock without touching them.
ALTER TABLE obs_lock
  ADD COLUMN boot_id   TEXT     NOT NULL DEFAULT '',
  ADD COLUMN boot_term CHAR(36) NOT NULL DEFAULT '',
  ADD COLUMN liveness  TEXT     NOT NULL DEFAULT '';

ALTER TABLE obs_node
  ADD COLUMN liveness TEXT NOT NULL DEFAULT '';
