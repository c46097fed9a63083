// Package bouncertest puts a real PgBouncer before a database of a test:
//
//	pooled := bouncertest.Start(t, pgtest.New(t), bouncertest.Options{Mode: bouncertest.Session}).URL()
//
// Its program is that of BOUNCERTEST_BINDIR, of PATH or of the system's usual
// folders. Where there is none, the package manager installs it, since a test that
// skips itself proves nothing. So the version is that of the system; see [Prepares].
//
// Nothing is left behind: see package servertest, which runs servers of all kinds.
package bouncertest
