package pgtest

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/servertest"
)

// NewFrom makes a database for one test as a copy of a template, and returns
// its URL as [New] does. The template is prepared once per cluster, by whichever
// test of whichever package comes first; the others wait for it.
//
// The name says what prepare does: whoever changes the one must change the
// other, so it should hold a hash of the migrations or whatever else prepare
// applies. It may have 48 lower-case letters, digits and underscores.
func NewFrom(t testing.TB, name string, prepare func(ctx context.Context, url string) error) string {
	t.Helper()
	admin := own.AdminURL(t)
	ctx, cancel := context.WithTimeout(t.Context(), databaseTimeout)
	defer cancel()
	template := "template_" + name
	if err := ensureTemplate(ctx, admin, template, prepare); err != nil {
		t.Fatalf("prepare the template database %s: %v", name, err)
	}
	return clone(t, admin, template)
}

// ensureTemplate prepares a template under an advisory lock, which the server
// frees by itself should this process die.
func ensureTemplate(ctx context.Context, admin, template string, prepare func(context.Context, string) error) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if exists, err := hasDatabase(ctx, conn, template); exists || err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lockKey(template)); err != nil {
		return fmt.Errorf("wait for another preparation: %w", err)
	}
	if exists, err := hasDatabase(ctx, conn, template); exists || err != nil {
		return err
	}
	return buildTemplate(ctx, conn, admin, template, prepare)
}

// buildTemplate gives a template its name last. So a template that exists is
// complete, and a half-made one is begun again.
func buildTemplate(ctx context.Context, conn *pgx.Conn, admin, template string, prepare func(context.Context, string) error) error {
	draft := "draft_" + template[len("template_"):]
	for _, statement := range []string{
		"DROP DATABASE IF EXISTS " + quote(draft) + " WITH (FORCE)",
		"CREATE DATABASE " + quote(draft) + " TEMPLATE template0",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := prepare(ctx, servertest.WithDatabase(admin, draft)); err != nil {
		return err
	}
	// Nobody can copy a database to which somebody is connected.
	for _, statement := range []string{
		"ALTER DATABASE " + quote(draft) + " WITH ALLOW_CONNECTIONS false",
		"ALTER DATABASE " + quote(draft) + " RENAME TO " + quote(template),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func hasDatabase(ctx context.Context, conn *pgx.Conn, name string) (bool, error) {
	var exists bool
	err := conn.QueryRow(ctx,
		`SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("look for database %s: %w", name, err)
	}
	return exists, nil
}

func lockKey(name string) int64 {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return int64(hash.Sum64())
}
