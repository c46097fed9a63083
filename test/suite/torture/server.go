package torture

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/testbed"
)

// serverTimeout bounds a stop or a start of a server, recovery included.
const serverTimeout = 2 * time.Minute

// server is one of the two PostgreSQL servers.
type server struct {
	name string
	pg   *pgtest.Server
	// busy is held by the fault that has it down.
	busy sync.Mutex
}

func openServer(ctx context.Context, name string, settings map[string]string) (*server, error) {
	pg, err := pgtest.Open(ctx, pgtest.Options{Settings: settings})
	if err != nil {
		return nil, fmt.Errorf("start the %s server: %w", name, err)
	}
	return &server{name: name, pg: pg}, nil
}

// url is that of the server's database, for its superuser.
func (s *server) url() string { return s.pg.URL("postgres") }

func (s *server) address() string { return fmt.Sprintf("127.0.0.1:%d", s.pg.Port()) }

// execute runs statements on a connection of their own.
func (s *server) execute(ctx context.Context, statements ...string) error {
	if err := testbed.Execute(ctx, s.url(), statements...); err != nil {
		return fmt.Errorf("set up the %s server: %w", s.name, err)
	}
	return nil
}

// folder is that of the server's data.
func (s *server) folder(ctx context.Context) (string, error) {
	return s.shownBy(ctx, "SHOW data_directory")
}

// shownBy reads what a statement shows.
func (s *server) shownBy(ctx context.Context, statement string) (value string, err error) {
	conn, err := pgx.Connect(ctx, s.url())
	if err != nil {
		return "", fmt.Errorf("connect to the %s server: %w", s.name, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := conn.QueryRow(ctx, statement).Scan(&value); err != nil {
		return "", fmt.Errorf("ask the %s server: %w", s.name, err)
	}
	return value, nil
}

// keepLog copies a log of the server into the run's folder.
func keepLog(from, dir, name string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("keep the log of a server: %w", err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("keep the log of a server: %w", err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("keep the log of a server: %w", err)
	}
	return nil
}

// through is a URL with another address and user, and with what else is given.
func through(direct, address string, user *url.Userinfo, application string) (string, error) {
	u, err := url.Parse(direct)
	if err != nil {
		return "", fmt.Errorf("read the URL of a server: %w", err)
	}
	u.Host, u.User = address, user
	if application != "" {
		query := u.Query()
		query.Set("application_name", application)
		u.RawQuery = query.Encode()
	}
	return u.String(), nil
}
