package sourcetest

import (
	"maps"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// kept has tables whose timestamp is kept in one way each, or by nothing.
func kept(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE plain (id {integer} PRIMARY KEY, stamp {timestamp}, other {timestamp} DEFAULT ("+f.Now+"))",
		"CREATE TABLE preset (id {integer} PRIMARY KEY, stamp {timestamp} DEFAULT ("+f.Now+"))",
		"CREATE TABLE led (id {integer} PRIMARY KEY, stamp {timestamp} NOT NULL)",
		"CREATE INDEX led_by_time ON led (stamp, id)",
		"CREATE TABLE behind (id {integer} PRIMARY KEY, stamp {timestamp})",
		"CREATE INDEX behind_by_id ON behind (id, stamp)",
		"CREATE VIEW seen AS SELECT * FROM preset")
	want := map[string]source.Answer{"plain": source.No, "preset": source.Yes, "led": source.Yes, "behind": source.No, "seen": source.Unknown}
	for table, statement := range f.Kept {
		f.exec(statement)
		want[table] = source.Yes
	}
	q := observer.Query{Key: []string{"id"}, Timestamp: "STAMP"}
	for q.Table = range maps.Keys(want) {
		d, err := f.Source.Describe(t.Context(), q)
		if err != nil || d.TimestampKept != want[q.Table] || d.TimestampDate {
			t.Errorf("%s: kept %s, want %s; a date %t; %v", q.Table, d.TimestampKept, want[q.Table], d.TimestampDate, err)
		}
	}
	q.Table, q.SQL = "", "SELECT * FROM preset"
	if d, err := f.Source.Describe(t.Context(), q); err != nil || d.TimestampKept != source.Unknown {
		t.Errorf("a query: kept %s, %v", d.TimestampKept, err)
	}
	if _, ok := f.Types["date"]; !ok {
		return
	}
	f.exec("CREATE TABLE dated (id {integer} PRIMARY KEY, stamp {date})")
	q.Table, q.SQL = "dated", ""
	if d, err := f.Source.Describe(t.Context(), q); err != nil || d.TimestampKept != source.No || !d.TimestampDate {
		t.Errorf("a date: kept %s, a date %t; %v", d.TimestampKept, d.TimestampDate, err)
	}
}
