-- Why something stands still, and for how long: observers that are paused, and sinks that
-- fail. The columns have constant defaults: nothing is rewritten.

-- +goose Up
-- Of the last pause. They count while paused is set. With an end, the pause is over at that
-- time; the next turn of a node then clears paused. paused_until is NULL for a pause
-- without an end. An older binary does not know the end: it leaves the observer alone
-- until a newer node has cleared paused.
ALTER TABLE obs_cursor ADD COLUMN paused_at    TEXT;
ALTER TABLE obs_cursor ADD COLUMN paused_until TEXT;
ALTER TABLE obs_cursor ADD COLUMN paused_by    TEXT NOT NULL DEFAULT '';
ALTER TABLE obs_cursor ADD COLUMN pause_reason TEXT NOT NULL DEFAULT '';

-- Why the sink stores nothing, on which node and since when; empty when the last attempt
-- went well. They stand in the row without a stream. An older binary leaves them as they are.
ALTER TABLE obs_sink_offset ADD COLUMN last_error  TEXT NOT NULL DEFAULT '';
ALTER TABLE obs_sink_offset ADD COLUMN failed_node TEXT NOT NULL DEFAULT '';
ALTER TABLE obs_sink_offset ADD COLUMN failed_at   TEXT;
