package bouncertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
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

// startTimeout bounds a start, which takes a moment on a machine that has
// nothing else to do.
const startTimeout = 2 * time.Minute

// kind is PgBouncer.
var kind = servertest.Kind{
	Name: "PgBouncer", Prefix: "observerd-bouncertest-", Users: []string{"postgres", "nobody"}, Pid: "pgbouncer.pid", End: syscall.SIGKILL,
}

// Sweep removes what tests that were killed have left of their servers.
func Sweep() { kind.Sweep() }

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
	*servertest.Instance
	program string
	options Options
	server  *url.URL
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
	through.Host = p.Address()
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
	instance, err := servertest.NewInstance(kind, "")
	if err != nil {
		return nil, err
	}
	p := &Pooler{Instance: instance, program: path, options: options, server: server}
	err = os.WriteFile(p.Dir.Log(), nil, 0o644)
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
	p.Port = port
	password, _ := p.server.User.Password()
	config := filepath.Join(p.Dir.Data(), "pgbouncer.ini")
	for path, text := range map[string]string{
		config:    p.config(),
		p.users(): fmt.Sprintf("%q %q\n", p.server.User.Username(), password),
	} {
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), p.Who.Own(path)); err != nil {
			return fmt.Errorf("configure PgBouncer: %w", err)
		}
	}
	// The pooler outlives ctx, which bounds its start alone.
	return p.Start(ctx, p.Command(context.WithoutCancel(ctx), syscall.SIGKILL, p.program, config), p.ping)
}

func (p *Pooler) users() string { return filepath.Join(p.Dir.Data(), "users.txt") }

func (p *Pooler) config() string {
	settings := map[string]string{
		"listen_addr": "127.0.0.1", "listen_port": strconv.Itoa(p.Port), "unix_socket_dir": "",
		"auth_type": "trust", "auth_file": p.users(), "pidfile": filepath.Join(p.Dir.Data(), "pgbouncer.pid"),
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
