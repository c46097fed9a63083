// Package lockdbtest gives tests coordination databases that are migrated already:
// copies of one that was migrated once. To migrate each costs more than most
// tests do, and under the race detector, where goose's buffers of 4 MiB are thrown
// away again and again, ten times that.
package lockdbtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/migrations"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// SQLite makes a database in a folder of the test and returns its URL.
func SQLite(t testing.TB) string {
	t.Helper()
	content, err := file()
	if err != nil {
		t.Fatalf("prepare a coordination database: %v", err)
	}
	path := filepath.Join(t.TempDir(), "observerd.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path
}

// file is a migrated database. Whoever closes it last moves its log into it.
var file = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "lockdbtest-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "observerd.db")
	if err := migrate(context.Background(), "sqlite:"+path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Postgres makes a database for one test, as [pgtest.New] does. The statements of
// before, if any, ran on it before the migrations did: INT_LOCK as Spring creates it.
func Postgres(t testing.TB, before string) string {
	t.Helper()
	name, err := template(before)
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.NewFrom(t, name, func(ctx context.Context, url string) error {
		if err := pgtest.Execute(ctx, url, before); err != nil {
			return err
		}
		return migrate(ctx, url)
	})
}

// template names what a database was made from.
func template(before string) (string, error) {
	hash := fnv.New128a()
	_, _ = fmt.Fprintln(hash, before)
	files := migrations.Postgres()
	names, err := fs.Glob(files, "*")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(hash, name, string(text))
	}
	return fmt.Sprintf("coordination_%x", hash.Sum(nil)), nil
}

func migrate(ctx context.Context, url string) error {
	db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return errors.Join(db.Migrate(ctx), db.Close())
}
