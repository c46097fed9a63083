-- Events that sinks have refused, and a digest of those that they have stored.

-- +goose Up

-- The events that a sink with "on-poison: park" has refused for good, and later ones of their
-- keys, in the order of their stream: as they stood in obs_event, because retention takes them
-- there. retry_at says that an operator wants the events of the key delivered.
CREATE TABLE obs_parked (
  id        BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sink      TEXT        NOT NULL,
  stream    TEXT        NOT NULL,
  seq       BIGINT      NOT NULL,
  event_id  UUID        NOT NULL,
  type      TEXT        NOT NULL,
  subject   TEXT        NOT NULL,
  version   INTEGER     NOT NULL,
  change    TEXT        NOT NULL,
  snapshot  BOOLEAN     NOT NULL,
  time      TIMESTAMPTZ NOT NULL,
  logged_at TIMESTAMPTZ NOT NULL,
  data      JSON        NOT NULL,
  reason    TEXT        NOT NULL,
  parked_at TIMESTAMPTZ NOT NULL,
  retry_at  TIMESTAMPTZ,
  UNIQUE (sink, event_id)
);

-- Of the ids of all events of the stream that the sink has stored.
ALTER TABLE obs_sink_offset ADD COLUMN stored_digest TEXT NOT NULL DEFAULT '';
