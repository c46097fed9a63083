package servertest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Runner is what [testing.M] and the result of [Shared.Wrap] have in common.
type Runner interface {
	// Run runs the tests and returns the code to exit with.
	Run() int
}

// Shared is a server that all tests of a test binary share: the first one that
// needs it starts it, and the end of all tests removes it. A server for each
// would cost a second or two each.
type Shared[S io.Closer] struct {
	// Name is the kind of server, for messages.
	Name string
	// EnvURL names the environment variable that carries the URL of a server
	// that a whole test run shares.
	EnvURL string
	// URL is where a server's own database is, as who may do everything.
	URL func(S) string
	// Open makes the server and starts it.
	Open func(context.Context) (S, error)
	// Timeout bounds Open, the installation of the server's programs included.
	Timeout time.Duration

	mu      sync.Mutex
	server  S
	started bool
	// err is kept, so that a hundred tests do not wait for the same failure.
	err error
}

// Get returns the server, which it starts at the first call.
func (s *Shared[S]) Get() (S, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started && s.err == nil {
		// Not the context of the test that happens to be first: others follow.
		ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
		defer cancel()
		s.server, s.err = s.Open(ctx)
		s.started = s.err == nil
	}
	return s.server, s.err
}

// SideBySide lets so many tests of a package run at once, unless -parallel says
// otherwise. TestMain calls it, before the tests, in a package whose tests wait most of
// their time: ten where they wait for servers and processes, fewer with nodes in their own
// process, which need the processors.
func SideBySide(tests int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(tests))
	}
}

// AdminURL is that of the server which the whole test run shares, else of the
// one that this test binary shares.
func (s *Shared[S]) AdminURL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv(s.EnvURL); url != "" {
		return url
	}
	server, err := s.Get()
	if err != nil {
		t.Fatalf("start %s: %v", s.Name, err)
	}
	return s.URL(server)
}

// WithDatabase returns the URL of a server with another database in it. It
// panics where that is no URL.
func WithDatabase(server, name string) string {
	parsed, err := url.Parse(server)
	if err != nil {
		panic("servertest: the URL of the server is none") // Its text may hold a password.
	}
	parsed.Path = "/" + name
	return parsed.String()
}

// Wrap lets the server be removed after the tests of m, also of helpers that run
// them themselves: goleak.VerifyTestMain(s.Wrap(m)) looks for leaks after that.
func (s *Shared[S]) Wrap(m Runner) Runner { return wrapped{m, s.Name, s.close} }

func (s *Shared[S]) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		return nil
	}
	s.started = false
	return s.server.Close()
}

type wrapped struct {
	inner Runner
	name  string
	close func() error
}

func (w wrapped) Run() int {
	code := w.inner.Run()
	if err := w.close(); err != nil {
		fmt.Fprintf(os.Stderr, "remove the server of %s: %v\n", w.name, err)
		code = max(code, 1)
	}
	return code
}
