-- The look for dead processes must not read every lock. The table is created empty; the
-- indexes are of tables with a row for each lock, and take a moment.

-- +goose Up
-- Processes that are no nodes and hold locks. Each notes itself once a minute.
CREATE TABLE obs_process (
  boot_id  TEXT        PRIMARY KEY,
  liveness TEXT        NOT NULL,
  seen_at  TEXT        NOT NULL
);
CREATE INDEX obs_lock_region ON obs_lock (region);
CREATE INDEX obs_lock_process ON obs_lock (boot_id);
CREATE INDEX obs_hold_process ON obs_hold (boot_id);
