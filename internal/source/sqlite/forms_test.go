package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/internal/source/sqlite"
)

func events() observer.Query {
	return observer.Query{Table: "events", Key: []string{"id"}, Timestamp: "at"}
}

func TestTimestampForms(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	instant := time.Date(2024, 7, 1, 10, 0, 0, 0, time.UTC)
	// now writes the present in the form, so that the horizon can be compared.
	for name, test := range map[string]struct{ kind, value, cursor, now string }{
		"local text":        {"DATETIME", "'2024-07-01 12:00:00'", "2024-07-01 12:00:00", ""},
		"text with T":       {"TEXT", "'2024-07-01T12:00:00.000'", "2024-07-01T12:00:00.000", ""},
		"text with Z":       {"TIMESTAMP", "'2024-07-01T10:00:00Z'", "2024-07-01T10:00:00Z", "strftime('%Y-%m-%dT%H:%M:%SZ')"},
		"text with offset":  {"TEXT", "'2024-07-01T05:00:00-05:00'", "2024-07-01T05:00:00-05:00", "strftime('%Y-%m-%dT%H:%M:%S-05:00', 'now', '-5 hours')"},
		"text of Go":        {"DATETIME", "'2024-07-01 10:00:00 +0000 UTC'", "2024-07-01 10:00:00 +0000 UTC", "strftime('%Y-%m-%d %H:%M:%S +0000 UTC')"},
		"minutes":           {"TEXT", "'2024-07-01 12:00'", "2024-07-01 12:00", ""},
		"seconds":           {"INTEGER", "1719828000", "1719828000", "unixepoch()"},
		"milliseconds":      {"TIMESTAMP", "1719828000000", "1719828000000", "unixepoch() * 1000"},
		"microseconds":      {"INTEGER", "1719828000000000", "1719828000000000", "unixepoch() * 1000000"},
		"nanoseconds":       {"INTEGER", "1719828000000000000", "1719828000000000000", "unixepoch() * 1000000000"},
		"seconds as a REAL": {"REAL", "1719828000.0", "1719828000", "unixepoch('subsec')"},
		"Julian day":        {"REAL", "2460492.9166666665", "2460492.9166666665", "julianday()"},
	} {
		path := filepath.Join(t.TempDir(), "events.db")
		writer := openWriter(t, path)
		s := open(t, sqlite.Options{URL: "sqlite:" + path, Location: berlin})
		exec(t, writer, fmt.Sprintf("CREATE TABLE events (id INTEGER PRIMARY KEY, at %s)", test.kind))
		exec(t, writer, fmt.Sprintf("INSERT INTO events VALUES (1, %s)", test.value))
		rows := sourcetest.ReadAll(t, s, events(), observer.Range{})
		if len(rows) != 1 || rows[0].Err != nil || rows[0].Cursor != test.cursor {
			t.Errorf("%s: rows = %+v, want the cursor %s", name, rows, test.cursor)
			continue
		}
		if d := rows[0].Time.Sub(instant).Abs(); d > time.Millisecond {
			t.Errorf("%s: time = %s, want %s", name, rows[0].Time, instant)
		}
		if again := sourcetest.ReadAll(t, s, events(), observer.Range{From: rows[0].Cursor}); len(again) != 1 {
			t.Errorf("%s: %d rows from the row's own cursor, want 1", name, len(again))
		}
		if test.now != "" {
			exec(t, writer, fmt.Sprintf("INSERT INTO events VALUES (2, %s)", test.now))
		}
		checkHorizon(t, name, s, rows[0].Cursor, test.now != "")
	}
}

// checkHorizon checks that the horizon is later than an old row and, a minute
// of overlap behind the clock, earlier than one of now.
func checkHorizon(t *testing.T, name string, s *sqlite.Source, old string, fresh bool) {
	t.Helper()
	h, err := s.Horizon(t.Context(), events())
	if err != nil || s.Compare(old, h.Cursor) >= 0 || h.Exact || h.Lag != time.Minute {
		t.Errorf("%s: horizon = %+v, %v, want it after %s", name, h, err, old)
	}
	rows := sourcetest.ReadAll(t, s, events(), observer.Range{From: h.Cursor})
	if fresh != (len(rows) == 1) {
		t.Errorf("%s: %d rows from the horizon %s", name, len(rows), h.Cursor)
	}
	if fresh && s.Compare(rows[0].Cursor, h.Cursor) < 0 {
		t.Errorf("%s: Compare puts %s before %s, SQLite does not", name, rows[0].Cursor, h.Cursor)
	}
}

func TestUnreadableTimestamps(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.db")
	writer := openWriter(t, path)
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	exec(t, writer, "CREATE TABLE events (id INTEGER PRIMARY KEY, at)")
	if h, err := s.Horizon(t.Context(), events()); err != nil || h.Cursor != "" {
		t.Errorf("horizon of an empty table = %+v, %v, want it empty", h, err)
	}
	for i, value := range []string{
		"'1719828000'", "'soon'", "''", "'2024-13-01'", "'2024-01-01 25:00'", "'2024-01-01x10:00:00'", "'2024-01-01 10:00:00+'",
		"'2024-01-01 10:00:00 CET'", "'2024-01-01 1'", "x'01'", "9e999", "-9e999", "'10000-01-01'",
	} {
		exec(t, writer, fmt.Sprintf("INSERT INTO events VALUES (%d, %s)", i, value))
	}
	for _, row := range sourcetest.ReadAll(t, s, events(), observer.Range{}) {
		if row.Err == nil || row.Cursor != "" || !strings.Contains(row.Err.Error(), "column at") {
			t.Errorf("row %+v, want it poison", row)
		}
	}
	exec(t, writer, "INSERT INTO events VALUES (100, '2024-01-01')")
	if h, err := s.Horizon(t.Context(), events()); err != nil || len(h.Cursor) != len("2024-01-01") {
		t.Errorf("horizon = %+v, %v, want the form of the one readable row", h, err)
	}
	d, err := s.Describe(t.Context(), events())
	if err != nil || len(d.Warnings) != 1 {
		t.Errorf("warnings = %q, %v, want one", d.Warnings, err)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite.Options{URL: "sqlite:nowhere.db"})
	ordered := []string{
		"", "-20", "-3.5", "-3", "0", "0.25", "0.5", "3", "3.5", "20", "9007199254740992", "9007199254740993",
		"2024-01-01", "2024-01-01 10:00:00", "2024-01-01 10:00:00.5", "2024-01-01T09:00:00",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := s.Compare(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("Compare(%q, %q) = %d", a, b, got)
			}
		}
	}
}

func FuzzCursor(f *testing.F) {
	path := filepath.Join(f.TempDir(), "events.db")
	exec(f, openWriter(f, path), "CREATE TABLE events (id INTEGER PRIMARY KEY, at)")
	s := open(f, sqlite.Options{URL: "sqlite:" + path})
	for _, cursor := range []string{"1", "-0.5", "2024-01-01 10:00:00 +0200 CEST", "inf", "0x10", "1e5", "2024-01-01T10:00Z"} {
		f.Add(cursor, "2024-01-01")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if x, y := s.Compare(a, b), s.Compare(b, a); (x < 0) != (y > 0) || (x == 0) != (y == 0) {
			t.Fatalf("Compare(%q, %q) = %d, the other way round %d", a, b, x, y)
		}
		rows, err := s.Read(t.Context(), events(), observer.Range{From: a})
		if err != nil {
			return // Refused, and not by a crash.
		}
		for rows.Next() {
			t.Fatalf("a row of an empty table: %+v", rows.Row())
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFaultyURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "sqlite:", "orders.db", "sqlite::memory:", "sqlite:a.db?mode=rwc", "postgres://h/db"} {
		if s, err := sqlite.Open(sqlite.Options{URL: url}); err == nil {
			t.Errorf("Open(%q) succeeded", url)
			_ = s.Close()
		}
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "late.db")
	s := open(t, sqlite.Options{URL: "sqlite://" + path})
	_, err := s.Horizon(t.Context(), events())
	if !errors.Is(err, observer.ErrUnreachable) || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("Horizon: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("files = %v, %v, want none", files, err)
	}
	exec(t, openWriter(t, path), "CREATE TABLE events (id INTEGER PRIMARY KEY, at TEXT)")
	if _, err := s.Horizon(t.Context(), events()); err != nil {
		t.Errorf("once the file is there: %v", err)
	}
	if err := os.WriteFile(path+".txt", []byte(strings.Repeat("this is no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	other := open(t, sqlite.Options{URL: "sqlite:" + path + ".txt"})
	if _, err := other.Horizon(t.Context(), events()); err == nil || errors.Is(err, observer.ErrUnreachable) {
		t.Errorf("a file that is no database: %v", err)
	}
}

func TestViewsAndHiddenNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.db")
	writer := openWriter(t, path)
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	exec(t, writer, `CREATE TABLE "odd ""name""" ("a.b" TEXT PRIMARY KEY, twice INTEGER GENERATED ALWAYS AS (2), r REAL, b BLOB);
		INSERT INTO "odd ""name""" VALUES ('k', 1e21, x'dead'); CREATE VIEW seen AS SELECT * FROM "odd ""name"""`)
	for _, table := range []string{`odd "name"`, `main.odd "name"`, "seen"} {
		rows := sourcetest.ReadAll(t, s, observer.Query{Table: table, Key: []string{"a.b"}}, observer.Range{})
		if want := `{"a.b":"k","twice":2,"r":1e+21,"b":"3q0="}`; len(rows) != 1 || string(rows[0].Data) != want {
			t.Errorf("%s: rows = %s, want %s", table, rows[0].Data, want)
		}
	}
}
