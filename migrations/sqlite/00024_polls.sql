-- Polls are read by observer.

-- +goose Up

-- Its entries end with the id.
CREATE INDEX obs_poll_stream ON obs_poll (stream);
