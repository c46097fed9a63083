-- What sinks have stored, what they hold of which log, and what operators do with them.

-- +goose Up

-- The id of the event log. A backup keeps it, so that a sink can tell a log that was restored
-- from one that was made anew.
CREATE TABLE obs_log (
  id      UUID        PRIMARY KEY,
  made_at TIMESTAMPTZ NOT NULL
);
INSERT INTO obs_log (id, made_at) VALUES (gen_random_uuid(), clock_timestamp());

-- stored_seq and stored_id are the last event that the sink has really stored: last_seq moves
-- past others too, and retention takes events. adopted says that the stream goes on from
-- last_seq, whatever the sink holds. The row without a stream says since when the sink is
-- paused, by whom, and why.
ALTER TABLE obs_sink_offset
  ADD COLUMN stored_seq   BIGINT      NOT NULL DEFAULT 0,
  ADD COLUMN stored_id    TEXT        NOT NULL DEFAULT '',
  ADD COLUMN adopted      BOOLEAN     NOT NULL DEFAULT FALSE,
  ADD COLUMN paused_at    TIMESTAMPTZ,
  ADD COLUMN paused_by    TEXT        NOT NULL DEFAULT '',
  ADD COLUMN pause_reason TEXT        NOT NULL DEFAULT '';
