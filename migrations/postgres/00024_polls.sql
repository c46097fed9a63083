-- Polls are read by observer.

-- +goose Up

-- By id alone the polls of an observer were found among those of all. Nodes of before go on:
-- their polls wait for the new index, about two seconds for a million rows, and their
-- clean-up reads the whole table for each batch.
ALTER TABLE obs_poll
  DROP CONSTRAINT obs_poll_pkey,
  ADD PRIMARY KEY (stream, id);
