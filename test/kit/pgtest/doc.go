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
//     tidily with [Wrap] in its TestMain:
//
//     func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Wrap(m)) }
//
//   - A test that stops, kills or configures its server takes one for itself
//     with [Start].
//
// The server programs are those of PGTEST_BINDIR, of PATH or of the system's
// usual folders. Where there are none, the package manager installs them, since
// a test that skips itself proves nothing.
//
// Nothing is left behind: see package servertest, which runs servers of all
// kinds. [Run] and the cleanups of [Start] remove what they started.
package pgtest
