-- A general lock ends with its holder's release or TTL, and not with its holder's process. An
-- older binary can neither share a lock nor see which process is dead until it is upgraded.
-- The tables are locked in the order in which its looks read them, for a moment each.

-- +goose Up
DROP INDEX obs_lock_process;
ALTER TABLE obs_hold DROP COLUMN boot_id, DROP COLUMN liveness;
DROP TABLE obs_process;
