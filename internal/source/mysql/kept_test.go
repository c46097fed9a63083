package mysql_test

import (
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// TestWhatKeepsATimestamp has tables, a view and a query.
func TestWhatKeepsATimestamp(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	exec(t, connect(t, url), `
		CREATE TABLE plain (id int PRIMARY KEY, at datetime, other datetime DEFAULT now());
		CREATE TABLE preset (id int PRIMARY KEY, at datetime DEFAULT now());
		CREATE TABLE stamped (id int PRIMARY KEY, at datetime ON UPDATE now());
		CREATE TABLE indexed (id int PRIMARY KEY, at datetime, KEY (id, at));
		CREATE TABLE hooked (id int PRIMARY KEY, at datetime);
		CREATE TRIGGER hook BEFORE UPDATE ON hooked FOR EACH ROW SET NEW.at = now();
		CREATE TABLE child (id int, at date NOT NULL);
		CREATE VIEW seen AS SELECT * FROM plain`)
	s := open(t, mysql.Options{URL: url})
	for name, want := range map[string]source.Answer{
		"plain": source.No, "preset": source.Yes, "indexed": source.Yes, "hooked": source.Yes, "child": source.No, "stamped": source.Yes, "seen": source.Unknown,
	} {
		d, err := s.Describe(t.Context(), observer.Query{Table: name, Key: []string{"id"}, Timestamp: "AT"})
		if err != nil || d.TimestampKept != want || d.TimestampDate != (name == "child") {
			t.Errorf("%s: kept %s, want %s; a date %t; %v", name, d.TimestampKept, want, d.TimestampDate, err)
		}
	}
	d, err := s.Describe(t.Context(), observer.Query{SQL: "SELECT id, CAST(at AS date) AS day FROM preset", Key: []string{"id"}, Timestamp: "day"})
	if err != nil || d.TimestampKept != source.Unknown || !d.TimestampDate {
		t.Errorf("a query: kept %s, a date %t; %v", d.TimestampKept, d.TimestampDate, err)
	}
}
