package page_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/browsertest"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// patience is how long a test waits for what must happen, on a machine that has much else to do.
const patience = time.Minute

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(withProgram{browsertest.Wrap(pgtest.Wrap(m))})
}

// envBinary names the program under test. It is built where that is not set.
const envBinary = "OBSERVERD_TEST_BINARY"

// program is the folder of the daemon, which is built when the first test asks for it.
var program = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "observerd-page-")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return folder, daemon.Build(ctx, daemon.BuildOptions{Out: filepath.Join(folder, "observerd")})
})

// withProgram removes the program after the tests.
type withProgram struct{ tests servertest.Runner }

// Run implements goleak.TestingM.
func (w withProgram) Run() int {
	code := w.tests.Run()
	if os.Getenv(envBinary) == "" {
		if folder, _ := program(); folder != "" {
			_ = os.RemoveAll(folder)
		}
	}
	return code
}

// binary returns the path of the daemon.
func binary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(envBinary); path != "" {
		return path
	}
	folder, err := program()
	must(t, err)
	return filepath.Join(folder, "observerd")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks again until there is no complaint.
func eventually(t *testing.T, complaint func() error) {
	t.Helper()
	waittest.Eventually(t, patience, complaint)
}
