-- In which form a source's timestamps are, where its columns hold values of any. The
-- column has a constant default: nothing is rewritten.

-- +goose Up
-- timestamp_form is empty until a poll has found it, and for sources whose columns have
-- a type. An older binary leaves it as it is, and takes the form of the newest timestamp.
ALTER TABLE obs_cursor ADD COLUMN timestamp_form TEXT NOT NULL DEFAULT '';
