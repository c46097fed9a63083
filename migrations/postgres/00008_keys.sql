-- How the keys of a stream are written. The column has a constant default: nothing is
-- rewritten, and the exclusive lock lasts a moment.

-- +goose Up
-- key_form is empty until a poll has looked at the columns of the key. A stream that has
-- rows by then keeps the keys as the database writes them; others have them in the normal
-- form. An older binary refuses a stream whose keys it would write in another way: to it,
-- query_fingerprint is that of another query.
ALTER TABLE obs_cursor ADD COLUMN key_form TEXT NOT NULL DEFAULT '';
