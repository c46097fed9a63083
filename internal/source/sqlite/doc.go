// Package sqlite reads SQLite databases that other programs write.
//
// The file is opened read-only and never created. A database in WAL mode is
// read while others write it; in the other journal modes a long read makes the
// writer wait, which is SQLite's nature. Beside a database in WAL mode SQLite
// keeps its -wal and -shm files, whoever opens it.
//
// # The cursor
//
// A cursor is the timestamp as it is stored. Three forms are understood:
//
//   - TEXT as in ISO 8601, "2026-03-29", "2026-03-29 01:30:00.5" or
//     "2026-03-29T01:30:00Z", with a zone or in the zone of the configuration.
//     SQLite orders it as text, so one table should keep to one form.
//   - INTEGER, the time since 1970 in seconds, milliseconds, microseconds or
//     nanoseconds: of these, the one that puts it between 1973 and 5138 (below
//     10^11 seconds, below 10^14 milliseconds, below 10^17 microseconds).
//   - REAL, a Julian day where it would be one of the years 0 to 9999, or else
//     seconds since 1970.
//
// Anything else, a number that is stored as TEXT too, makes a row poison.
//
// # The horizon
//
// SQLite does not tell when a transaction began, so the horizon is the clock
// less the overlap, written in the form of the newest rows. An empty table has
// no form yet, and the empty horizon keeps the low-water mark where it is.
package sqlite
