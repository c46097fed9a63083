-- What a cursor must know of its source, ranges that are read a second time,
-- and accounts that a source has refused. The columns have constant defaults or
-- none, so nothing is rewritten and the exclusive lock lasts a moment.

-- +goose Up
-- source_identity tells which database the marks were read from, source_columns
-- the columns of the data and their types; reread_at is when the rows above the
-- low-water mark were read last. All three are empty until a commit writes them.
-- start_ts is the low-water mark of the stream's first commit: where an observer
-- begins that does not begin with all that there is.
-- An older binary advances the cursor without touching them. They then speak of
-- an earlier commit: a source that was exchanged, or a column that was dropped,
-- meanwhile is noticed by the next node that looks, and rows are read again
-- sooner than they must be. A reset by an older binary leaves them as well, and
-- so accepts no other columns.
ALTER TABLE obs_cursor
  ADD COLUMN source_identity TEXT NOT NULL DEFAULT '',
  ADD COLUMN source_columns  TEXT NOT NULL DEFAULT '',
  ADD COLUMN reread_at       TIMESTAMPTZ,
  ADD COLUMN start_ts        TEXT NOT NULL DEFAULT '';

-- Ranges that are read beside the polls. A step changes its row in the commit of
-- its rows; position_ts is where the next step begins. An older binary leaves
-- sweeps to others.
CREATE TABLE obs_sweep (
  id          BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream      TEXT        NOT NULL,
  kind        TEXT        NOT NULL,
  state       TEXT        NOT NULL,
  from_ts     TEXT        NOT NULL,
  before_ts   TEXT        NOT NULL,
  position_ts TEXT        NOT NULL,
  row_count   BIGINT      NOT NULL DEFAULT 0,
  event_count BIGINT      NOT NULL DEFAULT 0,
  actor       TEXT        NOT NULL,
  started_at  TIMESTAMPTZ NOT NULL,
  updated_at  TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX obs_sweep_running ON obs_sweep (stream, kind) WHERE state = 'running';

-- Accounts that a source has refused, so that all nodes leave them alone. digest
-- is of salt and secret: another one means that the secret was changed.
-- refused_at is when this secret was refused first, retry_at when one node may
-- try again.
CREATE TABLE obs_account (
  account    TEXT        PRIMARY KEY,
  salt       BYTEA       NOT NULL,
  digest     BYTEA       NOT NULL,
  failures   INTEGER     NOT NULL,
  refused_at TIMESTAMPTZ NOT NULL,
  retry_at   TIMESTAMPTZ NOT NULL,
  node       TEXT        NOT NULL,
  reason     TEXT        NOT NULL
) WITH (fillfactor = 50);
