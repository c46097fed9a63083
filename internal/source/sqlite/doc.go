// Package sqlite reads SQLite databases that other programs write.
//
// The file is opened read-only and never created. A database in WAL mode is
// read while others write it; in the other journal modes a long read makes the
// writer wait, which is SQLite's nature. Beside a database in WAL mode SQLite
// keeps its -wal and -shm files, also of one that is only read.
//
// # The cursor
//
// A cursor is the timestamp as it is stored. These forms are understood:
//
//   - TEXT as in ISO 8601, "2026-03-29", "2026-03-29 01:30:00.5" or
//     "2026-03-29T01:30:00Z", with a zone or in the zone of the configuration.
//     SQLite orders it as text, so one table should keep to one separator and zone.
//   - INTEGER or REAL, the time since 1970 in seconds, milliseconds, microseconds or
//     nanoseconds: the first of these in which it does not lie behind the year 9999;
//     or a Julian day of the years 0 to 9999.
//
// A stream has one of them. Anything else, a number that is stored as TEXT too, makes a
// row poison.
//
// # The horizon
//
// SQLite does not tell when a transaction began, so the horizon is the clock
// less the overlap, written in the form of the stream, and texts as the newest rows
// write them. An empty table has no form yet, and the empty horizon keeps the
// low-water mark where it is.
package sqlite
