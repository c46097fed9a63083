package mariatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
)

const (
	// startTimeout bounds the making and the start of a server, which take two
	// seconds on a machine that has nothing else to do.
	startTimeout = 2 * time.Minute
	stopTimeout  = 30 * time.Second
)

// owner is the account that may do everything; it needs no password.
const owner = "root"

// systemZone is the server's system time zone, in the form that needs no
// database of zones.
const systemZone = "CET-1CEST,M3.5.0,M10.5.0/3"

// kind tells the folders of this package from others.
var kind = servertest.Kind{Prefix: "observerd-mariatest-", Alive: serverAlive}

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
	programs programs
	who      servertest.Account
	dir      servertest.Workdir
	options  Options
	port     int
	process  *servertest.Process // nil before the start
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
	who, err := servertest.AccountOf("MariaDB", "mysql", "nobody")
	if err != nil {
		return nil, err
	}
	dir, err := servertest.NewWorkdir(kind, options.Dir, who)
	if err != nil {
		return nil, err
	}
	s := &Server{programs: found, who: who, dir: dir, options: options}
	if err := s.initialise(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := servertest.StartOnFreePort(ctx, func(port int) error { return s.start(ctx, port) }); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// command prepares a server program. It inherits no environment, in which
// options could stand. A killed server has nothing to save.
func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = s.dir.Path
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + s.dir.Path, "LC_ALL=C", "TZ=" + systemZone}
	cmd.SysProcAttr = s.who.Attributes(syscall.SIGKILL)
	return cmd
}

// start returns when the server answers queries.
func (s *Server) start(ctx context.Context, port int) error {
	s.port = port
	// The server outlives ctx, which bounds its start alone.
	cmd := s.command(context.WithoutCancel(ctx), s.programs.server, s.arguments(s.options.Settings)...)
	ping := func(ctx context.Context) error { return Ping(ctx, s.URL("")) }
	var err error
	if s.process, err = s.dir.Serve(ctx, cmd, ping, syscall.SIGKILL); err != nil {
		return fmt.Errorf("start MariaDB: %w", err)
	}
	return nil
}

// URL of a database of this server, as the account that may do everything.
// The database "mysql" always exists.
func (s *Server) URL(database string) string {
	return (&url.URL{
		Scheme: "mysql",
		User:   url.User(owner),
		Host:   net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:   "/" + database,
	}).String()
}

// LogTail returns the last lines of the server's log.
func (s *Server) LogTail() string { return s.dir.LogTail() }

// Close ends the server without mercy and removes all that it wrote.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var err error
	if s.process != nil {
		err = s.process.End(ctx, syscall.SIGKILL)
	}
	return errors.Join(err, s.dir.Remove())
}

// serverAlive reports whether a server runs on this data folder.
func serverAlive(data string) bool {
	pid := servertest.ReadPid(filepath.Join(data, "server.pid"))
	return pid != 0 && servertest.Alive(pid)
}
