package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// A column holds what nobody declared, of any length: here the timestamp and a number.
func TestLongValuesInAnyColumn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db := openWriter(t, path)
	exec(t, db, "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, total NUMERIC, updated_at DATETIME)")
	exec(t, db, "INSERT INTO orders VALUES (1, 1.5, '2024-05-01 10:00:00'), (2, zeroblob(3000000), '2024-05-01 10:00:01')")
	exec(t, db, "INSERT INTO orders VALUES (0, 0, '2024-05-01 09:00:00 +0000 '||hex(zeroblob(5000)))") // It is judged before a large row is met.
	exec(t, db, "INSERT INTO orders VALUES (3, 3, '2024-05-01 10:00:02'), (4, 4, '2024-05-01 10:00:03 +0000 '||hex(zeroblob(2000000)))")
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	faults := map[string]string{
		"2": "the row is larger than 1048576 bytes",
		"0": "column updated_at is not a timestamp that is understood", "4": "column updated_at is not a timestamp that is understood",
	}
	rows, err := s.Read(t.Context(), observer.Query{Table: "orders", Key: []string{"order_id"}, Timestamp: "updated_at"}, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for rows.Next() {
		r := rows.Row()
		keys = append(keys, r.Key)
		if (r.Err != nil) != (faults[r.Key] != "") || r.Err != nil && r.Err.Error() != faults[r.Key] {
			t.Errorf("row %s: %v, want %q", r.Key, r.Err, faults[r.Key])
		}
	}
	if err := rows.Close(); err != nil || rows.Err() != nil {
		t.Error(err, rows.Err())
	}
	if got := strings.Join(keys, " "); got != "0 1 2 3 4" {
		t.Errorf("keys = %s", got)
	}
}

// What is far too long for a timestamp is not read to learn how the stream writes them.
func TestHorizonBesideLongTimestamps(t *testing.T) { //nolint:paralleltest // It measures what the process allocates.
	path := filepath.Join(t.TempDir(), "x.db")
	db := openWriter(t, path)
	exec(t, db, "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, updated_at DATETIME)")
	exec(t, db, "INSERT INTO orders VALUES (1, '2024-05-01 10:00'), (2, '2025-05-01 10:00:00 '||hex(zeroblob(10000000))), (3, '2025-05-01 10:00:00 '||hex(zeroblob(10000000)))")
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h, err := s.Horizon(t.Context(), observer.Query{Table: "orders", Key: []string{"order_id"}, Timestamp: "updated_at"})
	runtime.ReadMemStats(&after)
	if err != nil || len(h.Cursor) != len("2024-05-01 10:00") {
		t.Errorf("the horizon is %q, %v", h.Cursor, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 10<<20 {
		t.Errorf("%d bytes were allocated for a horizon", got)
	}
}

// In UTF-16 each character counts twice, and once in an event.
func TestRowsInUTF16(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	exec(t, db, "PRAGMA encoding = 'UTF-16'")
	exec(t, db, "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, a TEXT, b TEXT)")
	exec(t, db, "INSERT INTO orders VALUES (1, '"+strings.Repeat("a", 900_000)+"', NULL), (2, '"+strings.Repeat("a", 900_000)+"', '"+strings.Repeat("b", 900_000)+"')")
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	rows, err := s.Read(context.Background(), observer.Query{Table: "orders", Key: []string{"order_id"}}, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() || rows.Row().Err != nil || len(rows.Row().Data) < 900_000 {
		t.Errorf("the first row: %v, %v", rows.Row().Err, rows.Err())
	}
	if !rows.Next() || rows.Row().Err == nil || rows.Next() || rows.Err() != nil {
		t.Errorf("the second row is no poison, or not the last: %v", rows.Err())
	}
}
