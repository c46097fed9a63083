package bouncertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/servertest"
)

const (
	// startTimeout bounds a start, which takes a moment on a machine that has
	// nothing else to do.
	startTimeout = 2 * time.Minute
	stopTimeout  = 30 * time.Second
)

// kind tells the folders of this package from others.
var kind = servertest.Kind{Prefix: "observerd-bouncertest-", Alive: alive}

// Mode is PgBouncer's pool_mode: for how long a client has a session of the server.
type Mode string

// The modes in which a client may have transactions.
const (
	Session     Mode = "session"
	Transaction Mode = "transaction"
)

// Options of a pooler.
type Options struct {
	// Mode is required.
	Mode Mode
	// Settings override those of pgbouncer.ini, by its names:
	// {"max_prepared_statements": "100"}.
	Settings map[string]string
}

// Pooler is a PgBouncer before one database, on a port of 127.0.0.1.
type Pooler struct {
	program string
	who     servertest.Account
	dir     servertest.Workdir
	options Options
	server  *url.URL
	port    int
	process *servertest.Process // nil before the start
}

// Start puts a PgBouncer before the database of a URL. It knows the role of that URL
// alone, and is removed when the test ends.
func Start(t testing.TB, databaseURL string, options Options) *Pooler {
	t.Helper()
	return servertest.Give(t, "PgBouncer", servertest.InstallTimeout+startTimeout, func(ctx context.Context) (*Pooler, error) {
		return open(ctx, databaseURL, options)
	})
}

// URL is that of the database, through the pooler.
func (p *Pooler) URL() string {
	through := *p.server
	through.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
	return through.String()
}

func open(ctx context.Context, databaseURL string, options Options) (*Pooler, error) {
	path, err := program(ctx)
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(databaseURL)
	if err != nil {
		return nil, errors.New("read the URL of the database: it is none") // Its text may hold a password.
	}
	who, err := servertest.AccountOf("PgBouncer", "postgres", "nobody")
	if err != nil {
		return nil, err
	}
	dir, err := servertest.NewWorkdir(kind, "", who)
	if err != nil {
		return nil, err
	}
	p := &Pooler{program: path, who: who, dir: dir, options: options, server: server}
	err = os.WriteFile(dir.Log(), nil, 0o644)
	if err == nil {
		err = servertest.StartOnFreePort(ctx, func(port int) error { return p.start(ctx, port) })
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// start returns when the pooler lets a client through.
func (p *Pooler) start(ctx context.Context, port int) error {
	p.port = port
	password, _ := p.server.User.Password()
	config := filepath.Join(p.dir.Data(), "pgbouncer.ini")
	for path, text := range map[string]string{
		config:    p.config(),
		p.users(): fmt.Sprintf("%q %q\n", p.server.User.Username(), password),
	} {
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), p.who.Own(path)); err != nil {
			return fmt.Errorf("configure PgBouncer: %w", err)
		}
	}
	// The pooler outlives ctx, which bounds its start alone.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), p.program, config)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.dir.Path, []string{"LC_ALL=C", "TZ=UTC"}, p.who.Attributes(syscall.SIGKILL)
	var err error
	if p.process, err = p.dir.Serve(ctx, cmd, p.ping, syscall.SIGKILL); err != nil {
		return fmt.Errorf("start PgBouncer: %w", err)
	}
	return nil
}

func (p *Pooler) users() string { return filepath.Join(p.dir.Data(), "users.txt") }

func (p *Pooler) config() string {
	settings := map[string]string{
		"listen_addr": "127.0.0.1", "listen_port": strconv.Itoa(p.port), "unix_socket_dir": "",
		"auth_type": "trust", "auth_file": p.users(), "pidfile": filepath.Join(p.dir.Data(), "pgbouncer.pid"),
		"pool_mode": string(p.options.Mode), "max_client_conn": "500", "default_pool_size": "100",
	}
	maps.Copy(settings, p.options.Settings)
	var b strings.Builder
	fmt.Fprintf(&b, "[databases]\n* = host=%s port=%s\n[pgbouncer]\n", p.server.Hostname(), p.server.Port())
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = %s\n", name, settings[name])
	}
	return b.String()
}

func (p *Pooler) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// LogTail returns the last lines of the pooler's log.
func (p *Pooler) LogTail() string { return p.dir.LogTail() }

// Close ends the pooler without mercy and removes all that it wrote.
func (p *Pooler) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var err error
	if p.process != nil {
		err = p.process.End(ctx, syscall.SIGKILL)
	}
	return errors.Join(err, p.dir.Remove())
}

// alive reports whether a pooler runs on this folder of data.
func alive(data string) bool {
	pid := servertest.ReadPid(filepath.Join(data, "pgbouncer.pid"))
	return pid != 0 && servertest.Alive(pid)
}
