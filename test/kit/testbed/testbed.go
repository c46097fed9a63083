package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/pgtest"
)

// Options of a testbed.
type Options struct {
	// Binary is the observerd that is measured. Required.
	Binary string
	// Folder is where the nodes have their folders with configuration and log;
	// it is made. Required.
	Folder string
	// Progress tells a person who waits what is going on; nil tells nobody.
	Progress func(format string, args ...any)
}

// Testbed is a PostgreSQL cluster of its own and a folder. One that was not opened
// has no cluster, and starts nodes on databases of others. It is safe for concurrent
// use.
type Testbed struct {
	Options
	server *pgtest.Server
}

// connections is how many the server allows: dozens of nodes have a dozen each.
const connections = 800

// Open starts the server. The caller closes the testbed.
func Open(ctx context.Context, o Options) (*Testbed, error) {
	if o.Binary == "" || o.Folder == "" {
		return nil, errors.New("a testbed needs a binary and a folder")
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	if err := os.MkdirAll(o.Folder, 0o755); err != nil { //nolint:gosec // Whoever reads the report may look at the logs.
		return nil, fmt.Errorf("make the folder of the testbed: %w", err)
	}
	server, err := pgtest.Open(ctx, pgtest.Options{Settings: map[string]string{
		"max_connections": strconv.Itoa(connections),
		// The server says to the microsecond when a commit took effect.
		"track_commit_timestamp": "on",
	}})
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return &Testbed{Options: o, server: server}, nil
}

// Close removes the server and all of its databases. The folder stays.
func (b *Testbed) Close() error { return b.server.Close() }

// URL is that of a database, as the superuser.
func (b *Testbed) URL(database string) string { return b.server.URL(database) }

// Address is where the server listens.
func (b *Testbed) Address() string { return "127.0.0.1:" + strconv.Itoa(b.server.Port()) }

// Database makes an empty database and returns its URL. The name is of
// letters, digits and _.
func (b *Testbed) Database(ctx context.Context, name string) (string, error) {
	name = strings.ToLower(name)
	err := Execute(ctx, b.URL("postgres"), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0")
	if err != nil {
		return "", fmt.Errorf("make the database %s: %w", name, err)
	}
	return b.URL(name), nil
}

// Execute is [pgtest.Execute].
func Execute(ctx context.Context, where string, statements ...string) error {
	return pgtest.Execute(ctx, where, statements...)
}

// Through returns the URL with another address in the place of the server's, as
// that of a proxy.
func Through(where, address string) (string, error) {
	parsed, err := url.Parse(where)
	if err != nil {
		return "", fmt.Errorf("read a database's URL: %w", err)
	}
	parsed.Host = address
	return parsed.String(), nil
}
