package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/servertest"
)

// databaseTimeout bounds the making and the dropping of a database, which take
// a tenth of a second each, on a machine that runs many tests at once.
const databaseTimeout = 2 * time.Minute

// New makes an empty database for one test and returns its URL: over TCP, as a
// superuser, without TLS. The database is dropped when the test ends, together
// with the connections that are still open.
func New(t testing.TB) string {
	t.Helper()
	return NewIn(t, "UTF8")
}

// NewIn makes one in another encoding, such as LATIN1.
func NewIn(t testing.TB, encoding string) string {
	t.Helper()
	return clone(t, own.AdminURL(t), "template0", "ENCODING '"+encoding+"'")
}

// clone makes a database from a template and drops it when the test ends.
func clone(t testing.TB, admin, template string, options ...string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(t.Context(), databaseTimeout)
	defer cancel()
	err := Execute(ctx, admin, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template)+" "+strings.Join(options, " "))
	if err != nil {
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
		defer cancel()
		if err := Execute(ctx, admin, "DROP DATABASE "+quote(name)+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the database of the test: %v", err)
		}
	})
	return servertest.WithDatabase(admin, name)
}

// Execute runs statements without parameters on a connection of their own,
// each of them outside of a transaction.
func Execute(ctx context.Context, url string, statements ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return errors.Join(err, conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
