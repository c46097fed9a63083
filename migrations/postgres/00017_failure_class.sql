-- The class of the failures that obs_cursor.failures counts, since each class has pauses of
-- its own. The column has a constant default: nothing is rewritten, and the exclusive lock
-- lasts a moment.

-- +goose Up
-- Empty for failures of no class, and for those that an older binary has noted: it leaves
-- the column as it is.
ALTER TABLE obs_cursor ADD COLUMN failure_class TEXT NOT NULL DEFAULT '';
