package mariatest

import (
	"context"
	"errors"
	"net/url"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
)

// startTimeout bounds the making and the start of a server, which take two
// seconds on a machine that has nothing else to do.
const startTimeout = 2 * time.Minute

// owner is the account that may do everything; it needs no password.
const owner = "root"

// systemZone is the server's system time zone, in the form that needs no
// database of zones.
const systemZone = "CET-1CEST,M3.5.0,M10.5.0/3"

// kind is MariaDB. A killed server has nothing to save.
var kind = servertest.Kind{
	Name: "MariaDB", Prefix: "observerd-mariatest-", Users: []string{"mysql", "nobody"}, Pid: "server.pid", End: syscall.SIGKILL,
}

// Sweep removes what tests that were killed have left of their servers.
func Sweep() { kind.Sweep() }

// Options of a server. The zero value is what most tests want.
type Options struct {
	// Settings override those of the server, by the names of its options:
	// {"max-connections": "20"}.
	Settings map[string]string
	// Dir is the existing folder in which the server's own folder is made.
	// Empty: the temporary directory.
	Dir string
}

// Server is a MariaDB of our own, on one port of 127.0.0.1. Its methods are not
// for concurrent use.
type Server struct {
	*servertest.Instance
	programs programs
	options  Options
}

// Start gives a test a server of its own and removes it when the test ends. A
// test that fails logs the end of the server's log.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	return servertest.Give(t, "MariaDB", servertest.InstallTimeout+startTimeout, func(ctx context.Context) (*Server, error) {
		return Open(ctx, options)
	})
}

// Open makes a server and starts it. The caller must Close it.
func Open(ctx context.Context, options Options) (*Server, error) {
	found, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	instance, err := servertest.NewInstance(kind, options.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{Instance: instance, programs: found, options: options}
	if err = s.initialise(ctx); err == nil {
		err = servertest.StartOnFreePort(ctx, func(port int) error { return s.start(ctx, port) })
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// command prepares the server's program.
func (s *Server) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := s.Command(ctx, syscall.SIGKILL, s.programs.server, args...)
	cmd.Env = append(cmd.Env, "TZ="+systemZone)
	return cmd
}

// start returns when the server answers queries.
func (s *Server) start(ctx context.Context, port int) error {
	s.Port = port
	// The server outlives ctx, which bounds its start alone.
	cmd := s.command(context.WithoutCancel(ctx), s.arguments(s.options.Settings)...)
	return s.Start(ctx, cmd, func(ctx context.Context) error { return Ping(ctx, s.URL("")) })
}

// URL of a database of this server, as the account that may do everything.
// The database "mysql" always exists.
func (s *Server) URL(database string) string {
	return (&url.URL{
		Scheme: "mysql",
		User:   url.User(owner),
		Host:   s.Address(),
		Path:   "/" + database,
	}).String()
}
