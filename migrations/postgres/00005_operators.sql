-- What an operator makes of a stream: rows that it is to forget.

-- +goose Up
-- epoch counts how often the stream has forgotten its rows. It is part of the ids of its
-- events: version 1 of a row is another event after that. An older binary leaves
-- it out of the ids that it makes.
ALTER TABLE obs_cursor
  ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
