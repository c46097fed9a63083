package pgtest

import (
	"context"

	"github.com/observerd/observerd/test/kit/servertest"
)

// EnvURL names the environment variable that carries the URL of a superuser of
// the cluster that a whole test run shares.
const EnvURL = "PGTEST_URL"

// Runner is what [testing.M] and the result of [Wrap] have in common.
type Runner = servertest.Runner

// Wrap removes, after the tests of a package, the server that they started, if
// they did: goleak.VerifyTestMain(pgtest.Wrap(m)).
func Wrap(m Runner) Runner { return own.Wrap(m) }

// own is the server of this test binary. It is the one variable of this
// package: tests have nothing else in common that could carry it.
var own = servertest.Shared[*Server]{
	Name: "PostgreSQL", Timeout: servertest.InstallTimeout + startTimeout,
	EnvURL: EnvURL, URL: func(s *Server) string { return s.URL("postgres") },
	Open: func(ctx context.Context) (*Server, error) { return Open(ctx, Options{}) },
}
