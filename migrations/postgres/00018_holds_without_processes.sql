-- A general lock ends with its holder's release or TTL, and not with its holder's process. An
-- older binary can neither share a lock nor see which process is dead until it is upgraded.

-- +goose Up
DROP TABLE obs_process;
DROP INDEX obs_lock_process;
ALTER TABLE obs_hold DROP COLUMN boot_id, DROP COLUMN liveness;
