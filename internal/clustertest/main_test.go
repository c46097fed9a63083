package clustertest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/observerd/observerd/internal/pgtest"
)

// envBinary names the program under test. It is built where nobody has set it.
const envBinary = "OBSERVERD_TEST_BINARY"

// sideBySide is how many tests run at once: they wait most of their time.
const sideBySide = "10"

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", sideBySide)
	goleak.VerifyTestMain(withBinary{pgtest.Wrap(m)})
}

// withBinary builds the program before the tests and removes it after them.
type withBinary struct{ tests pgtest.Runner }

// Run implements the runner of goleak.
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
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "../../cmd/observerd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build observerd: %w\n%s", err, output)
	}
	return nil
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
