-- A caller that waits for several locks stands in the line of each. The exclusive lock lasts
-- a moment: the table has a row for each caller that waits, and no more.

-- +goose Up
-- An older binary notes nobody any more: its callers wait without a place, try again after
-- their pauses, and are passed.
ALTER TABLE obs_wait
  DROP CONSTRAINT obs_wait_pkey,
  ADD PRIMARY KEY (waiter, lock_key, region);
