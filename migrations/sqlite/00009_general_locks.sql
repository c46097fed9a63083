-- What people want to know of a lock. The column has a constant default: nothing is
-- rewritten.

-- +goose Up
-- metadata is a JSON object of texts, or empty. An older binary that takes a lock leaves it
-- as it is; it takes none that has any.
ALTER TABLE obs_lock ADD COLUMN metadata TEXT NOT NULL DEFAULT '';
