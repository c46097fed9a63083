// Package pgtest gives tests a real PostgreSQL: a throw-away cluster that they
// start themselves, and a database of its own for each test.
//
// Most tests need one line:
//
//	url := pgtest.New(t)
//
// Where the cluster comes from:
//
//   - `make test` runs `pgtest go test ./...` (see cmd/pgtest), which starts one
//     cluster for the whole run and names it to the tests in PGTEST_URL. Any
//     other cluster works too: set PGTEST_URL to the URL of a superuser.
//
//   - A plain `go test ./internal/lockdb` has no such variable. Then the first
//     call of [New] starts a cluster for this test binary, which a package ends
//     tidily with [Run] or [Wrap] in its TestMain:
//
//     func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }
//
//   - A test that stops, kills or configures its server takes one for itself
//     with [Start].
//
// The server programs are those of PGTEST_BINDIR, of PATH or of the system's
// usual folders. Where there are none, the package manager installs them, since
// a test that skips itself proves nothing.
//
// # What is left behind
//
// Nothing runs on. The kernel tells the server to quit when the thread that
// started it ends (Pdeathsig), so a panic, a timeout or kill -9 of the tests
// ends it as well. Nothing is written outside of one folder under the temporary
// directory. [Run] and the cleanups of [Start] remove it; one that a killed run
// left there is removed by the next run, which knows it by a lock that nobody
// holds any more.
package pgtest
