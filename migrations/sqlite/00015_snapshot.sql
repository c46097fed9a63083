-- Which events are of rows that were there before. The columns have constant defaults:
-- nothing is rewritten, and the exclusive locks last a moment.

-- +goose Up
-- The horizon, in the source's own text, when the first reading of the stream began: rows
-- below it were there before. Empty in older streams, and in those without a timestamp.
-- first_reading says that this reading is still under way.
ALTER TABLE obs_cursor ADD COLUMN followed_from TEXT NOT NULL DEFAULT '';
ALTER TABLE obs_cursor ADD COLUMN first_reading BOOLEAN NOT NULL DEFAULT FALSE;

-- An older binary writes no snapshot.
ALTER TABLE obs_event ADD COLUMN snapshot BOOLEAN NOT NULL DEFAULT FALSE;
