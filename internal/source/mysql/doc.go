// Package mysql reads MySQL (5.7 and newer) and MariaDB (10.3 and newer)
// databases that other teams own.
//
// Every read is one REPEATABLE READ, READ ONLY transaction with a consistent
// snapshot, so that its statements see one state of the InnoDB tables, or a single statement. Rows are
// streamed in the text protocol; nothing is prepared and nothing buffered.
// Values become JSON as the server words them, which keeps numbers exact:
//
//	integers, tinyint(1), BIT       a number
//	DECIMAL, DOUBLE                 the number as the server prints it
//	FLOAT                           likewise where its six digits are exact, or as
//	                                few as are
//	JSON                            the value itself, without white space
//	TIMESTAMP                       "2026-03-29T01:30:00.5Z", always UTC
//	DATETIME                        "2026-03-29T01:30:00.5", as no zone is known
//	DATE, TIME, YEAR, ENUM, SET     text
//	BINARY, BLOB, geometry          base64; in a key hexadecimal digits
//	everything else                 text, whatever its character set over there
//
// Of a MariaDB, a JSON column of a table is known by the check that makes it
// one. In a query, and to an account that may read only some of the columns, it
// is text.
//
// # The URL
//
// mysql://user:password@host:port/database, or mariadb://…, with these
// parameters: tls=true, false (the default), skip-verify or preferred;
// ssl-ca=FILE, ssl-cert=FILE and ssl-key=FILE in PEM form; ssl-server-name=NAME,
// where the certificate names another host; socket=PATH in the place of the
// host.
//
// # The cursor
//
// A cursor has a fixed width, so the order of the texts is the order of the
// times: "2026-03-29 01:30:00.500000" (in UTC for TIMESTAMP, as it stands for
// DATETIME) or "2026-03-29" for DATE. Zero dates ("0000-00-00") and dates that
// no calendar has, which servers accept in some modes, are no instants and no
// NULL either: they make a row poison. They sort before all others, so only a
// read from the beginning meets them.
//
// # Keys and collations
//
// The server orders equal timestamps by the key under the column's collation,
// which may take "a" for "A". That order serves the index, and the next statement
// of a poll begins in it, with all keys that are equal to the last one. What was read
// by earlier polls is told by the timestamp alone, and two keys are one only if
// their bytes are equal. So a key whose case was changed is a new
// key here, as it is for the consumers of the events.
//
// # The horizon
//
// No more rows will appear before the start of the oldest open transaction or
// running statement, less a margin of a second, where a row's timestamp is set
// by the server (CURRENT_TIMESTAMP, ON UPDATE, NOW()): it is that of the
// beginning of the statement. Both are shown to accounts with the PROCESS
// privilege; see [Source.Horizon] for the cases in which the horizon falls back
// to the clock less the overlap. These things were found out with a real
// server, and are handled here:
//
//   - A transaction shows up when its first statement touches a table, which
//     may be long after the time that this statement writes: while another one
//     alters the table. As long as such a statement waits, it is seen running.
//     One that then stays open in a transaction was seen too late: where tables
//     are altered under load, the overlap should be as long as that takes.
//   - Within a function or a trigger NOW() stays what it was at the beginning of
//     the statement that called it, while each statement in there is shown as
//     having just begun. One that waits before the first touch of a table, such
//     as for SLEEP or GET_LOCK, needs an overlap as long as that.
//   - innodb_trx is answered from memory for as long as it is asked for more often
//     than ten times a second. The answer is believed only if our own
//     transaction is in it, with the statement that asks.
//   - trx_started is in the server's system time zone, in whole seconds.
//   - A prepared (XA) transaction without a session does not tell when it began.
//   - innodb_trx shows InnoDB alone, and the catalogue does not name the engines
//     of the tables behind a view or a query: a server that has another engine with
//     transactions, or one for tables of other servers, has no exact horizon.
//   - A thread that is just getting a statement seems as old as its sleep, and a
//     report that ends between the look at the statements and that at the
//     transactions seems to write. Statements without a transaction hold the mark for
//     that poll, and never take it back.
//
// A statement of any account that uses no InnoDB table, such as one that waits
// for GET_LOCK, holds the horizon for as long as it runs, since it may yet
// write. Read-only transactions, ours among them, do not.
//
// # What a read costs them
//
// A snapshot keeps the old versions of rows for as long as it lasts, and a table
// cannot be altered under it: bound reads by a limit of rows.
//
// # What a lock costs us
//
// A statement waits a second for a locked table, which is the least that MySQL
// can be told, and keeps its connection for that long. It gives that back then
// and tries again, see [source.LockWaits]. After a lock the read is planned anew:
// if the table was altered meanwhile, it fails with class retry, since its columns
// were told of before. While a table is renamed or dropped, MariaDB's catalogue
// shows its name and nothing else, and only warns of the lock.
package mysql
