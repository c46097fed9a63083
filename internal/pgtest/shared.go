package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// EnvURL names the environment variable that carries the URL of a superuser of
// the cluster that a whole test run shares.
const EnvURL = "PGTEST_URL"

// Runner is what [testing.M] and the result of [Wrap] have in common.
type Runner interface {
	// Run runs the tests and returns the code to exit with.
	Run() int
}

// Run runs the tests of a package and then removes the cluster that they
// started, if they did. Call it from TestMain: os.Exit(pgtest.Run(m)).
func Run(m Runner) int { return Wrap(m).Run() }

// Wrap does the work of [Run] for helpers that run the tests themselves, such
// as goleak: goleak.VerifyTestMain(pgtest.Wrap(m)) looks for leaks after the
// cluster, which has a goroutine of its own, was removed.
func Wrap(m Runner) Runner { return wrapped{m} }

type wrapped struct{ inner Runner }

func (w wrapped) Run() int {
	code := w.inner.Run()
	if err := own.close(); err != nil {
		fmt.Fprintf(os.Stderr, "pgtest: remove the cluster: %v\n", err)
		code = max(code, 1)
	}
	return code
}

// own is the cluster of this test binary. It is the one variable of this
// package: tests have nothing else in common that could carry it, and a
// cluster for each of them would cost a second each.
var own cluster

// cluster is started by the first test that needs it.
type cluster struct {
	mu     sync.Mutex
	server *Server
	// err is kept, so that a hundred tests do not wait for the same failure.
	err error
}

// adminURL of the cluster that this test binary uses.
func adminURL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv(EnvURL); url != "" {
		return url
	}
	url, err := own.url()
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	return url
}

func (c *cluster) url() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil && c.err == nil {
		// Not the context of the test that happens to be first: others follow.
		ctx, cancel := context.WithTimeout(context.Background(), installTimeout+startTimeout)
		defer cancel()
		c.server, c.err = Open(ctx, Options{})
	}
	if c.err != nil {
		return "", c.err
	}
	return c.server.URL("postgres"), nil
}

func (c *cluster) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	server := c.server
	c.server = nil
	return server.Close()
}
