// Package postgres reads PostgreSQL databases that other teams own.
//
// Every read is one REPEATABLE READ, READ ONLY transaction, so that its
// statements see one snapshot. It locks what it reads before it makes that, as
// SELECT would afterwards: a table that was written anew in between is empty for
// an older snapshot. Values arrive in PostgreSQL's own text form, or are brought
// into it where they travel as numbers, and become JSON without a detour through
// Go types, which keeps numbers exact:
//
//	boolean                         true, false
//	integers, numeric, real         the number as PostgreSQL prints it
//	NaN, Infinity                   a string
//	json, jsonb                     the value itself, without white space
//	timestamptz                     "2026-03-29T01:30:00.5Z", always UTC
//	timestamp                       "2026-03-29T01:30:00.5", as no zone is known
//	bytea                           base64
//	everything else, arrays too     PostgreSQL's text as a string
//
// # The cursor
//
// A cursor has a fixed width, so the order of the texts is the order of the
// times: "2026-03-29 01:30:00.500000" (in UTC for timestamptz, as it stands for
// timestamp) or "2026-03-29" for date. Infinity and years that do not fit four
// digits make a row poison.
//
// # The horizon
//
// No more rows will appear before the start of the oldest open transaction,
// where a row's timestamp is set by the database within the transaction that
// writes it. pg_stat_activity shows those of other roles to members of
// pg_read_all_stats (or pg_monitor) only; see [Source.Horizon] for the cases in
// which the horizon falls back to the clock less the overlap.
package postgres
