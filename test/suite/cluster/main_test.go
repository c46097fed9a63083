package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	process "github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// envBinary names the program under test. It is built where nobody has set it.
const envBinary = "OBSERVERD_TEST_BINARY"

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(withBinary{mariatest.Wrap(pgtest.Wrap(m))})
}

// withBinary builds the program before the tests and removes it after them.
type withBinary struct{ tests pgtest.Runner }

// Run implements goleak.TestingM.
func (w withBinary) Run() int {
	if os.Getenv(envBinary) != "" {
		return w.tests.Run()
	}
	folder, err := os.MkdirTemp("", "observerd-cluster-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "observerd")
	if err := build(binary); err != nil {
		return failed(err)
	}
	// Users without rights run it too.
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // See above.
		return failed(err)
	}
	if err := os.Setenv(envBinary, binary); err != nil {
		return failed(err)
	}
	return w.tests.Run()
}

func build(binary string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return process.Build(ctx, process.BuildOptions{Out: binary})
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
