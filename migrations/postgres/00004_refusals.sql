-- One row for each secret of an account that a source has refused, not one for
-- each account: the refusal of one node's secret must not make another node
-- forget that its own was refused too. The exclusive lock lasts a moment, and
-- the rows that are there stay.

-- +goose Up
-- An older binary goes on reading the table. It cannot note a refusal in it, and
-- then leaves the account alone by itself until it is restarted.
ALTER TABLE obs_account
  DROP CONSTRAINT obs_account_pkey,
  ADD PRIMARY KEY (account, digest);
