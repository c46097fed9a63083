package postgres_test

import (
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestWhatKeepsATimestamp has tables, a view and a query.
func TestWhatKeepsATimestamp(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	exec(t, connect(t, url), `
		CREATE TABLE plain (id int PRIMARY KEY, at timestamp, other timestamp DEFAULT now());
		CREATE TABLE preset (id int PRIMARY KEY, at timestamp DEFAULT now());
		CREATE TABLE indexed (id int PRIMARY KEY, at timestamp);
		CREATE INDEX ON indexed (id, at);
		CREATE TABLE hooked (id int PRIMARY KEY, at timestamp);
		CREATE TRIGGER hook BEFORE UPDATE ON hooked FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
		CREATE TABLE child (id int REFERENCES plain, at date);
		CREATE TABLE parts (id int, at timestamp DEFAULT now()) PARTITION BY HASH (id);
		CREATE VIEW seen AS SELECT * FROM plain`)
	s := open(t, postgres.Options{URL: url})
	for name, want := range map[string]source.Answer{
		"plain": source.No, "preset": source.Yes, "indexed": source.Yes, "hooked": source.Yes, "child": source.No, "parts": source.Yes, "seen": source.Unknown,
	} {
		d, err := s.Describe(t.Context(), observer.Query{Table: name, Key: []string{"id"}, Timestamp: "AT"})
		if err != nil || d.TimestampKept != want || d.TimestampDate != (name == "child") {
			t.Errorf("%s: kept %s, want %s; a date %t; %v", name, d.TimestampKept, want, d.TimestampDate, err)
		}
	}
	d, err := s.Describe(t.Context(), observer.Query{SQL: "SELECT id, at::date AS day FROM preset", Key: []string{"id"}, Timestamp: "day"})
	if err != nil || d.TimestampKept != source.Unknown || !d.TimestampDate {
		t.Errorf("a query: kept %s, a date %t; %v", d.TimestampKept, d.TimestampDate, err)
	}
}
