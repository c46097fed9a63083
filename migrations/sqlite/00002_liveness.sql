-- How the death of a lock's holder can be seen. The columns have constant
-- defaults: SQLite rewrites nothing.

-- +goose Up
-- boot_id is the process that holds the lock. liveness says how others see
-- whether it lives: 'flock' (a lock on a file of its own beside the database),
-- '' (not at all: only the TTL ends its lease), or 'gone' (it was found dead,
-- and the lease was taken from it). Both speak of the present row only while
-- boot_term = term: an older binary takes the lock without touching them.
ALTER TABLE obs_lock ADD COLUMN boot_id   TEXT     NOT NULL DEFAULT '';
ALTER TABLE obs_lock ADD COLUMN boot_term CHAR(36) NOT NULL DEFAULT '';
ALTER TABLE obs_lock ADD COLUMN liveness  TEXT     NOT NULL DEFAULT '';

ALTER TABLE obs_node ADD COLUMN liveness TEXT NOT NULL DEFAULT '';
