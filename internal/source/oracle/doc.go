// Package oracle reads Oracle databases that other teams own, from 11g on.
//
// The driver stands behind the seam of package client; the one that ships is
// goora. A read is one streaming SELECT, which Oracle answers from one snapshot
// by itself. Where rows without a timestamp need a second SELECT, both run in a
// read-only transaction. Nothing here needs more than CREATE SESSION and READ on
// the tables; see deploy/sql/oracle.sql for what each further grant is good for.
//
// No value depends on a session's formats, on its time zone or on what a driver
// makes of a type. In JSON:
//
//	NUMBER, FLOAT                   the exact decimal number
//	BINARY_FLOAT, BINARY_DOUBLE     the number; NaN and infinity as a string
//	VARCHAR2, NVARCHAR2             the string; '' is NULL, as it is for Oracle
//	CHAR, NCHAR                     the string without the blanks at its end
//	DATE                            "2026-03-29T01:30:00", as no zone is known
//	TIMESTAMP                       "2026-03-29T01:30:00.5", as no zone is known
//	TIMESTAMP WITH TIME ZONE        "2026-03-29T01:30:00.5+02:00"
//	TIMESTAMP WITH LOCAL TIME ZONE  "2026-03-28T23:30:00.5Z", always UTC
//	INTERVAL, ROWID                 Oracle's text as a string
//	RAW                             base64; hexadecimal where it is part of a key
//	CLOB, NCLOB                     the string, if it is no longer than a row may be
//	JSON                            the value itself, without white space
//	BOOLEAN                         true, false
//
// The blanks at the end of a CHAR are dropped because they say nothing: Oracle
// itself ignores them when it compares, and a key would carry them everywhere.
// Other types (BLOB, XMLTYPE, LONG, objects) are refused with the expression to
// write instead.
//
// # The cursor
//
// A cursor has a fixed width, so the order of the texts is the order of the
// times: "2026-03-29 01:30:00" for DATE, with ".123456789" for TIMESTAMP, and a
// Z behind that for the types with a zone, which are compared in UTC. It is
// bound as text that is converted to the column's own type. Years before 1 make
// a row poison.
//
// # The horizon
//
// No more rows will appear before the start of the oldest open transaction, less
// a margin, where the database sets a row's timestamp in the statement that
// writes it. See [Source.Horizon] for what that takes, and for the cases in
// which the horizon falls back to the clock less the overlap.
//
// # Tests
//
// The tests run against the emulator of package oratest. With a URL in
// OBSERVERD_TEST_ORACLE_URL the same stories run against a real database, in the
// schema of that account, which must be allowed to create tables, views and functions
// and should have the grants of deploy/sql/oracle.sql. Its tables ORDERS, STOCK,
// LOOSE, PLAIN, UNUSED, T_INTEGER, T_DECIMAL, T_NAME and T_TIMESTAMP, its view SHOWN
// and its function EMPTY_ORDERS are replaced.
package oracle
