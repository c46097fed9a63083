-- How far the reading of all rows of a stream has come, where one poll has not
-- enough time for it. The table is created empty.

-- +goose Up
-- reading identifies what is read, key is where it goes on, and seen are the numbers
-- of the rows that were met, one bit each. complete says that all rows were read;
-- what is left is to look for those that are gone, and key is the last that was looked
-- for. finished_at is when the last reading came to its end, NULL while one has not,
-- and took_ms for how long it lasted.
-- An older binary begins anew in every poll.
CREATE TABLE obs_generation (
  stream_id   INTEGER PRIMARY KEY,
  reading     TEXT    NOT NULL,
  key         TEXT    NOT NULL,
  complete    BOOLEAN NOT NULL,
  seen        BLOB    NOT NULL,
  row_count   INTEGER NOT NULL,
  started_at  TEXT    NOT NULL,
  finished_at TEXT,
  took_ms     INTEGER NOT NULL
);
