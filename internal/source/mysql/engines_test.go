package mysql

import (
	"slices"
	"testing"

	"github.com/observerd/observerd/test/kit/mariatest"
)

// Of a view and of a query it is not known what tables they read.
func TestForeignEngines(t *testing.T) {
	t.Parallel()
	rows := func(names ...string) (rows [][][]byte) {
		for _, name := range names {
			rows = append(rows, [][]byte{[]byte(name)})
		}
		return rows
	}
	with := activity{engine: firstForeign(rows("InnoDB", "ROCKSDB", "SEQUENCE"))}
	without := activity{engine: firstForeign(rows("InnoDB", "SEQUENCE"))}
	for name, test := range map[string]struct {
		seen  activity
		read  relation
		exact bool
	}{
		"a table":                           {with, relation{base: true, engine: "InnoDB"}, true},
		"an older table":                    {with, relation{base: true, engine: "MyISAM"}, true},
		"a foreign table":                   {with, relation{base: true, engine: "ROCKSDB"}, false},
		"a table of an unknown engine":      {without, relation{base: true}, false},
		"a view beside a foreign engine":    {with, relation{name: "a.view"}, false},
		"a view without a foreign engine":   {without, relation{name: "a.view"}, true},
		"a query beside a foreign engine":   {with, relation{}, false},
		"a query without a foreign engine":  {without, relation{}, true},
		"a table of another foreign engine": {without, relation{base: true, engine: "TokuDB"}, false},
	} {
		a := test.seen.of(test.read)
		if a.exact() != test.exact || (len(a.warnings()) == 0) != test.exact {
			t.Errorf("%s: exact %t, warnings %q, want exact %t", name, a.exact(), a.warnings(), test.exact)
		}
	}
}

func TestEnginesOfAServer(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{URL: mariatest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	rows, err := c.rows(t.Context(), "read the engines", enginesSQL)
	if err != nil || !slices.ContainsFunc(rows, func(row [][]byte) bool { return string(row[0]) == "InnoDB" }) {
		t.Errorf("engines %q, %v, want InnoDB among them", rows, err)
	}
	if engine, err := (activityReader{c}).foreignEngine(t.Context()); engine != "" || err != nil {
		t.Errorf("foreign is %q, %v", engine, err)
	}
}
