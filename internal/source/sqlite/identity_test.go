package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// TestRestoredFileIsAnother moves a backup into the place of a database.
func TestRestoredFileIsAnother(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path, backup := filepath.Join(folder, "shop.db"), filepath.Join(folder, "backup.db")
	shop, copied := openWriter(t, path), openWriter(t, backup)
	exec(t, copied, "CREATE TABLE events (id INTEGER PRIMARY KEY, at TEXT); INSERT INTO events VALUES (7, '2024-05-01')")
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	before, err := s.Identity(t.Context())
	if err != nil || before == "" {
		t.Fatalf("Identity = %q, %v", before, err)
	}
	if _, err := s.Read(t.Context(), events(), observer.Range{}); err == nil {
		t.Fatal("the table is there already")
	}
	// Whoever restores a file stops its program and removes its log first.
	if err := errors.Join(shop.Close(), copied.Close()); err != nil {
		t.Fatal(err)
	}
	for _, log := range []string{path + "-wal", path + "-shm"} {
		if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(backup, path); err != nil {
		t.Fatal(err)
	}
	if after, err := s.Identity(t.Context()); err != nil || after == before {
		t.Errorf("Identity = %q after a restore, %v", after, err)
	}
	if rows := sourcetest.ReadAll(t, s, events(), observer.Range{}); len(rows) != 1 {
		t.Errorf("%d rows: the old file is read", len(rows))
	}
}
