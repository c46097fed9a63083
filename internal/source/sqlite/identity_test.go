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

// TestRestoredFileIsAnother moves a backup into the place of a database, while it is read and
// between two polls.
func TestRestoredFileIsAnother(t *testing.T) {
	t.Parallel()
	for name, reading := range map[string]bool{"between polls": false, "during a read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			path, backup := filepath.Join(folder, "shop.db"), filepath.Join(folder, "backup.db")
			shop, copied := openWriter(t, path), openWriter(t, backup)
			exec(t, shop, "CREATE TABLE events (id INTEGER, at TEXT); INSERT INTO events VALUES (1, '2024-05-01'), (2, '2024-05-01')")
			exec(t, copied, "CREATE TABLE events (id INTEGER PRIMARY KEY, at TEXT); INSERT INTO events VALUES (7, '2024-05-01')")
			s := open(t, sqlite.Options{URL: "sqlite:" + path})
			before, err := s.Identity(t.Context())
			if err != nil || before == "" {
				t.Fatalf("Identity = %q, %v", before, err)
			}
			rows, err := s.Read(t.Context(), events(), observer.Range{})
			if err != nil || !rows.Next() {
				t.Fatal("no row", err)
			}
			if !reading {
				if err := rows.Close(); err != nil {
					t.Fatal(err)
				}
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
			if reading {
				more := rows.Next()
				if err := errors.Join(rows.Err(), rows.Close()); err != nil || !more {
					t.Errorf("the read that had begun: more rows %t, %v", more, err)
				}
			}
			if key, err := s.PrimaryKey(t.Context(), events()); err != nil || len(key) != 1 {
				t.Errorf("PrimaryKey = %q, %v: the old file is asked", key, err)
			}
			if rows := sourcetest.ReadAll(t, s, events(), observer.Range{}); len(rows) != 1 || rows[0].Key != "7" {
				t.Errorf("%+v: the old file is read", rows)
			}
		})
	}
}
