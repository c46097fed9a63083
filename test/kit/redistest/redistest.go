// Package redistest gives tests throw-away servers of Redis. Nothing is installed but
// redis-server, by the package manager where it is missing; see package servertest for what
// may be left behind.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
)

// startTimeout bounds a start, which takes a tenth of a second on a machine that has
// nothing else to do.
const startTimeout = time.Minute

// EnvURL names the environment variable that carries the address of a server which is used
// in the place of one of our own, as redis://127.0.0.1:6379.
const EnvURL = "REDISTEST_URL"

var errNoProgram = errors.New("no Redis server program (redis-server) found")

// kind is Redis. A killed server has nothing to save.
var kind = servertest.Kind{
	Name: "Redis", Prefix: "observerd-redistest-", Users: []string{"redis", "nobody"}, Pid: "server.pid", End: syscall.SIGKILL,
}

// Sweep removes what tests that were killed have left of their servers.
func Sweep() { kind.Sweep() }

func product() servertest.Product {
	packages := map[string]string{"apt-get": "redis-server"}
	for _, manager := range []string{"dnf", "yum", "apk", "zypper", "pacman", "brew"} {
		packages[manager] = "redis"
	}
	return servertest.Product{
		Name: "Redis server", Packages: packages, Missing: errNoProgram, Commands: []string{"redis-server"},
		Folders: []string{"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"},
		Instead: "put redis-server into PATH, or set REDISTEST_BINDIR to its folder, or REDISTEST_URL to a server of at least 7.0",
	}
}

// Server is a Redis of our own, on one port of 127.0.0.1.
type Server struct {
	*servertest.Instance
	program string
	args    []string
	// config is a file that the server writes, too; empty where it has none.
	config string
}

// Start gives a test a server of its own, with further arguments, and removes it when the
// test ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return servertest.Give(t, kind.Name, servertest.InstallTimeout+startTimeout, func(ctx context.Context) (*Server, error) {
		return Open(ctx, args...)
	})
}

// Open starts a server, with further arguments. The caller must Close it.
func Open(ctx context.Context, args ...string) (*Server, error) { return open(ctx, "", args...) }

func open(ctx context.Context, config string, args ...string) (*Server, error) {
	program, err := product().Program(ctx, "REDISTEST_BINDIR", "redis-server")
	if err != nil {
		return nil, err
	}
	instance, err := servertest.NewInstance(kind, "")
	if err != nil {
		return nil, err
	}
	s := &Server{Instance: instance, program: program, args: args, config: config}
	err = servertest.StartOnFreePort(ctx, func(port int) error {
		s.Port = port
		return s.Restart(ctx)
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Restart starts a server that was stopped, on its port. It has kept nothing.
func (s *Server) Restart(ctx context.Context) error {
	args := []string{}
	if s.config != "" {
		path := filepath.Join(s.Dir.Data(), "redis.conf")
		if err := errors.Join(os.WriteFile(path, []byte(s.config), 0o600), s.Who.Own(path)); err != nil {
			return err
		}
		args = append(args, path)
	}
	args = append(args,
		"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.Dir.Data(), "--pidfile", s.Dir.Data()+"/"+kind.Pid,
		"--databases", "512", "--save", "", "--appendonly", "no", "--loglevel", "notice", "--repl-diskless-sync-delay", "0",
		"--cluster-port", strconv.Itoa(s.Port-busBelow))
	args = append(args, s.args...)
	// The server outlives ctx, which bounds its start alone.
	cmd := s.Command(context.WithoutCancel(ctx), syscall.SIGKILL, s.program, args...)
	cmd.Args[0] = "redis-server" // By its name the program knows what it is to be.
	return s.Start(ctx, cmd, s.ping)
}

// ping is answered once the server serves: also by one that wants a password.
func (s *Server) ping(ctx context.Context) error {
	answer, err := s.Ask(ctx, "PING")
	if err == nil && answer != "+PONG" && !strings.HasPrefix(answer, "-NOAUTH") {
		err = fmt.Errorf("it answers %q", answer)
	}
	return err
}

// Ask sends a command and returns the first line of the answer.
func (s *Server) Ask(ctx context.Context, command string) (string, error) {
	conn, err := s.send(ctx, command)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

// send sends a command on a connection of its own, on which the answer can be read.
func (s *Server) send(ctx context.Context, command string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return nil, err
	}
	err = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if err == nil {
		_, err = fmt.Fprintf(conn, "%s\r\n", command)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// URL is the address of the server.
func (s *Server) URL() string { return "redis://" + s.Address() }

// Must sends a command that the server accepts.
func (s *Server) Must(t testing.TB, command string) {
	t.Helper()
	answer, err := s.Ask(t.Context(), command)
	if err != nil || strings.HasPrefix(answer, "-") {
		t.Fatalf("%s: %s %v", command, answer, err)
	}
}

// Kill ends the server without mercy; Restart starts it again.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.Stop(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// Pause stops the server's process, and returns what lets it go on.
func (s *Server) Pause(t testing.TB) (resume func()) {
	t.Helper()
	signal := func(which syscall.Signal) {
		if err := syscall.Kill(s.Process.Pid(), which); err != nil {
			t.Errorf("signal Redis: %v", err)
		}
	}
	signal(syscall.SIGSTOP)
	return func() { signal(syscall.SIGCONT) }
}

// Runner is what [testing.M] and the result of [Wrap] have in common.
type Runner = servertest.Runner

// Wrap removes, after the tests of a package, the server that they shared.
func Wrap(m Runner) Runner { return own.Wrap(m) }

// URL is the address of a server that the tests of a binary share.
func URL(t testing.TB) string {
	t.Helper()
	return own.AdminURL(t)
}

// own is the server of this test binary. It is the one variable of this package: tests have
// nothing else in common that could carry it.
var own = servertest.Shared[*Server]{
	Name: kind.Name, Timeout: servertest.InstallTimeout + startTimeout,
	EnvURL: EnvURL, URL: (*Server).URL,
	Open: func(ctx context.Context) (*Server, error) { return Open(ctx) },
}
