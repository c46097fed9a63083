-- One row for each secret of an account that a source has refused, not one for
-- each account: the refusal of one node's secret must not make another node
-- forget that its own was refused too. SQLite changes no primary key, so the
-- table is made anew with the rows that are there.

-- +goose Up
-- An older binary goes on reading the table. It cannot note a refusal in it, and
-- then leaves the account alone by itself until it is restarted.
CREATE TABLE obs_refusal (
  account    TEXT    NOT NULL,
  salt       BLOB    NOT NULL,
  digest     BLOB    NOT NULL,
  failures   INTEGER NOT NULL,
  refused_at TEXT    NOT NULL,
  retry_at   TEXT    NOT NULL,
  node       TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  PRIMARY KEY (account, digest)
);
INSERT INTO obs_refusal (account, salt, digest, failures, refused_at, retry_at, node, reason)
SELECT account, salt, digest, failures, refused_at, retry_at, node, reason FROM obs_account;
DROP TABLE obs_account;
ALTER TABLE obs_refusal RENAME TO obs_account;
