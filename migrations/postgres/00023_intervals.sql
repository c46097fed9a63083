-- How often nodes poll.

-- +goose Up

-- The interval of each type in milliseconds, as in "order=30000,wes=5000": a node may be
-- configured otherwise than the command that shows it. Empty for nodes of before.
ALTER TABLE obs_node ADD COLUMN intervals TEXT NOT NULL DEFAULT '';
