package compose_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// patience is how long a test waits for what must happen, on a machine that has
// much else to do.
const patience = 3 * time.Minute

// root is the repository.
var root = filepath.Join("..", "..", "..", "..")

// envBinary names the program under test. It is built where that is not set.
const envBinary = "OBSERVERD_TEST_BINARY"

// program is the daemon, built when the first test asks for it.
var program struct {
	once   sync.Once
	folder string
	err    error
}

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(withProgram{m}) }

// withProgram removes the program after the tests.
type withProgram struct{ tests servertest.Runner }

// Run implements goleak.TestingM.
func (w withProgram) Run() int {
	defer func() { _ = os.RemoveAll(program.folder) }()
	return w.tests.Run()
}

// binary returns the path of the daemon.
func binary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(envBinary); path != "" {
		return path
	}
	program.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if program.folder, program.err = os.MkdirTemp("", "observerd-compose-"); program.err == nil {
			program.err = daemon.Build(ctx, daemon.BuildOptions{Out: filepath.Join(program.folder, "observerd")})
		}
	})
	must(t, program.err)
	return filepath.Join(program.folder, "observerd")
}

// launch starts a program, which is killed when the test ends.
func launch(t *testing.T, o daemon.Options) (*daemon.Process, error) {
	t.Helper()
	p, err := daemon.Start(context.WithoutCancel(t.Context()), o)
	if err == nil {
		t.Cleanup(func() {
			p.Kill()
			if t.Failed() {
				t.Logf("log of %s:\n%s", o.Name, p.Log.Tail(10_000))
			}
		})
	}
	return p, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read returns a file of the repository.
func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, elements...)...))
	must(t, err)
	return string(text)
}

// eventually asks again until there is no complaint.
func eventually(t *testing.T, complaint func() error) {
	t.Helper()
	waittest.Eventually(t, patience, complaint)
}

// failedIf is a complaint for [eventually].
func failedIf(failed bool, format string, args ...any) error {
	if failed {
		return fmt.Errorf(format, args...)
	}
	return nil
}
