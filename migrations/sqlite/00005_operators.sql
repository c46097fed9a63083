-- What an operator decides about a stream, by which definition it is polled, and
-- how far it is behind. The columns have constant defaults: nothing is rewritten.

-- +goose Up
-- epoch counts how often the stream was made to forget its rows. It is part of the
-- ids of its events: version 1 of a row is another event after that. refusal is what
-- the last poll would not believe, accepted what the next one may do of it all the
-- same; both are empty for none. definition is that of the observer by which the
-- nodes poll, and defined_at when it was set; empty until a commit writes it. lag_ms
-- is how far the stream was behind after a poll that left rows behind, else 0.
-- An older binary leaves the epoch out of the ids that it makes, refuses what was
-- accepted, and polls by its own definition.
ALTER TABLE obs_cursor ADD COLUMN epoch      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE obs_cursor ADD COLUMN refusal    TEXT    NOT NULL DEFAULT '';
ALTER TABLE obs_cursor ADD COLUMN accepted   TEXT    NOT NULL DEFAULT '';
ALTER TABLE obs_cursor ADD COLUMN definition TEXT    NOT NULL DEFAULT '';
ALTER TABLE obs_cursor ADD COLUMN defined_at TEXT;
ALTER TABLE obs_cursor ADD COLUMN lag_ms     INTEGER NOT NULL DEFAULT 0;

-- refused says that the row was part of a refusal: it is shown, and the next poll
-- judges it anew.
ALTER TABLE obs_dead ADD COLUMN refused BOOLEAN NOT NULL DEFAULT FALSE;

-- outdated are the observers that the node leaves alone, because the others define
-- them in another way.
ALTER TABLE obs_node ADD COLUMN outdated TEXT NOT NULL DEFAULT '';
