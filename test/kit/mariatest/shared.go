package mariatest

import (
	"context"

	"github.com/observerd/observerd/test/kit/servertest"
)

// EnvURL names the environment variable that carries the URL of an account that
// may do everything, on the server that a whole test run shares.
const EnvURL = "MARIATEST_URL"

// Runner is what [testing.M] and the result of [Wrap] have in common.
type Runner = servertest.Runner

// Wrap removes, after the tests of a package, the server that they started, if
// they did: goleak.VerifyTestMain(mariatest.Wrap(m)).
func Wrap(m Runner) Runner { return own.Wrap(m) }

// own is the server of this test binary. It is the one variable of this
// package: tests have nothing else in common that could carry it.
var own = servertest.Shared[*Server]{
	Name: "MariaDB", Timeout: servertest.InstallTimeout + startTimeout,
	EnvURL: EnvURL, URL: func(s *Server) string { return s.URL("") },
	Open: func(ctx context.Context) (*Server, error) { return Open(ctx, Options{}) },
}
