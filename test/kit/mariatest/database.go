package mariatest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/observerd/observerd/test/kit/servertest"
)

// databaseTimeout bounds the making and the dropping of a database, on a
// machine that runs many tests at once.
const databaseTimeout = 2 * time.Minute

// New makes an empty database for one test and returns its URL, which is
// mysql://root@127.0.0.1:PORT/DATABASE: over TCP, as an account that may do
// everything, without TLS. The database is dropped when the test ends.
func New(t testing.TB) string {
	t.Helper()
	return newDatabase(t, own.AdminURL(t))
}

// New makes an empty database of this server for one test, as the function of
// that name does.
func (s *Server) New(t testing.TB) string {
	t.Helper()
	return newDatabase(t, s.URL(""))
}

func newDatabase(t testing.TB, admin string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(t.Context(), databaseTimeout)
	defer cancel()
	if err := execute(ctx, admin, "CREATE DATABASE "+quote(name)); err != nil {
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
		defer cancel()
		if err := execute(ctx, admin, "DROP DATABASE "+quote(name)); err != nil {
			t.Errorf("drop the database of the test: %v", err)
		}
	})
	return servertest.WithDatabase(admin, name)
}

// Connect opens a database as the program that owns it would, on one
// connection that is closed when the test ends. Several statements in one call
// are allowed, separated by semicolons. variables are set for the session, such
// as {"time_zone": "'+02:00'"}; nil means none.
func Connect(t testing.TB, databaseURL string, variables map[string]string) *sql.Conn {
	t.Helper()
	db, err := open(databaseURL, variables)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatalf("connect: %v", errors.Join(err, db.Close()))
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = db.Close()
	})
	return conn
}

// Ping reports whether a server answers.
func Ping(ctx context.Context, databaseURL string) error { return execute(ctx, databaseURL, "DO 1") }

// execute runs statements without parameters on a connection of their own.
func execute(ctx context.Context, databaseURL string, statements ...string) error {
	db, err := open(databaseURL, nil)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	return db.Close()
}

func open(databaseURL string, variables map[string]string) (*sql.DB, error) {
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the database: %w", err)
	}
	config := mysql.NewConfig()
	config.User = parsed.User.Username()
	config.Passwd, _ = parsed.User.Password()
	config.Net, config.Addr, config.DBName = "tcp", parsed.Host, strings.TrimPrefix(parsed.Path, "/")
	config.Params = variables
	config.MultiStatements = true
	config.Logger = &mysql.NopLogger{}
	if err := config.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
