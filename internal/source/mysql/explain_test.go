package mysql_test

import (
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/test/kit/mariatest"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	exec(t, connect(t, url), `
		CREATE TABLE good (id int PRIMARY KEY, at datetime NOT NULL, v int, KEY (at));
		INSERT INTO good SELECT seq, '2024-05-01' + INTERVAL seq SECOND, seq FROM seq_1_to_10000;
		CREATE TABLE bad (id int PRIMARY KEY, at datetime NOT NULL, v int) ENGINE=MyISAM;
		INSERT INTO bad SELECT seq, '2024-05-01' + INTERVAL seq SECOND, seq FROM seq_1_to_110000; ANALYZE TABLE good, bad`)
	s := open(t, mysql.Options{URL: url})
	in := observer.Range{From: "2024-05-01 02:46:30.000000"}
	good := observer.Query{Table: "good", Key: []string{"id"}, Timestamp: "at"}
	p, err := s.Plan(t.Context(), good, in)
	if err != nil || p.Sorts || len(p.FullScan) > 0 || !strings.Contains(p.Text, "key=at") {
		t.Errorf("plan = %+v, %v, want a range of the index", p, err)
	}
	bad := observer.Query{Table: "bad", Key: []string{"id"}, Timestamp: "at"}
	p, err = s.Plan(t.Context(), bad, in)
	if err != nil || !p.Sorts || len(p.FullScan) != 1 || !strings.Contains(p.FullScan[0], ".bad (about 110000 rows)") {
		t.Errorf("plan = %+v, %v, want the table read whole and sorted", p, err)
	}
	// The primary key is the end of every index of this engine.
	for table, want := range map[string]source.Answer{"good": source.Yes, "bad": source.No} {
		q := observer.Query{Table: table, Key: []string{"id"}, Timestamp: "at"}
		d, err := s.Describe(t.Context(), q)
		if err != nil || d.OrderIndexed != want {
			t.Errorf("%s: order indexed %s, %v, want %s", table, d.OrderIndexed, err, want)
		}
		if warned := strings.Contains(strings.Join(d.Warnings, " "), "MyISAM"); warned != (table == "bad") {
			t.Errorf("%s: warnings %q", table, d.Warnings)
		}
	}
	good.Key = []string{"v"}
	if d, err := s.Describe(t.Context(), good); err != nil || d.OrderIndexed != source.No {
		t.Errorf("by another key: order indexed %s, %v, want no", d.OrderIndexed, err)
	}
}
