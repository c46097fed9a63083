// Package mariatest gives tests a real MariaDB: a throw-away server that they
// start themselves, and a database of its own for each test.
//
// Most tests need one line:
//
//	url := mariatest.New(t)
//
// Where the server comes from:
//
//   - `make test` runs `pgtest go test ./...`, which starts one server for the
//     whole run, beside PostgreSQL, and names it to the tests in MARIATEST_URL.
//     Any other server works too, MySQL included: set MARIATEST_URL to the URL
//     of an account that may do everything.
//
//   - A plain `go test ./internal/source/mysql` has no such variable. Then the
//     first call of [New] starts a server for this test binary, which a package
//     ends tidily with [Run] or [Wrap] in its TestMain.
//
//   - A test that kills or configures its server takes one for itself with
//     [Start].
//
// The server's program is that of MARIATEST_BINDIR, of PATH or of the system's
// usual folders. Where there is none, the package manager installs it, since a
// test that skips itself proves nothing.
//
// Sessions are in UTC, but the server's system time zone is that of Central
// Europe: some of its tables show times in it, whatever the session says, and
// what reads them should meet the harder case.
//
// Nothing is left behind: see package servertest, which runs servers of all
// kinds.
package mariatest
