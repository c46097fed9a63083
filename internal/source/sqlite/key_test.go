package sqlite_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// made is a database in which some statements were run.
func made(t *testing.T, statements ...string) *sqlite.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.db")
	writer := openWriter(t, path)
	for _, text := range statements {
		exec(t, writer, text)
	}
	return open(t, sqlite.Options{URL: "sqlite:" + path})
}

func TestKeyOrder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		table, index string
		want         bool
	}{
		{"(k INTEGER PRIMARY KEY)", "", true},
		{"(k INT PRIMARY KEY)", "", true},
		{"(k TEXT PRIMARY KEY) WITHOUT ROWID", "", true},
		{"(k TEXT NOT NULL PRIMARY KEY) STRICT", "", true},
		{"(k, n)", "(k)", false},
		{"(k BLOB, n)", "(k)", false},
		{"(k ANY, n INT) STRICT", "(k)", false}, // would not make a number of the text of one
		{"(k INT, n)", "(k, n)", true},
		{"(k INT, n)", "(n, k)", false},
		{"(k INT, n)", "(k DESC)", true}, // is read backwards
		{"(k INT, n)", "(k) WHERE n > 0", false},
		{"(k INT, n)", "(k + 0)", false},
		{"(k TEXT COLLATE NOCASE, n)", "(k)", true},
		{"(k TEXT COLLATE NOCASE, n)", "(k COLLATE NOCASE)", true},
		{"(k TEXT COLLATE NOCASE, n)", "(k COLLATE BINARY)", false},
		{"(k TEXT, n)", "(k COLLATE NOCASE)", false},
		{"(k TEXT, n INT AS (length(k)) STORED)", "(k)", true},
	} {
		statements := []string{"CREATE TABLE t " + test.table}
		if test.index != "" {
			statements = append(statements, "CREATE INDEX i ON t "+test.index)
		}
		s := made(t, statements...)
		if got := sourcetest.OrdersByKey(t, s, observer.Query{Table: "t", Key: []string{"k"}}); got != test.want {
			t.Errorf("%s %s: an index serves: %t", test.table, test.index, got)
		}
	}
}

// An index whose last column has another collation leaves the rows of equal keys to
// be sorted, which may be all of them.
func TestKeyOrderOfAllColumns(t *testing.T) {
	t.Parallel()
	for columns, want := range map[string]bool{"a, b COLLATE NOCASE": true, "a, b COLLATE BINARY": false, "a DESC, b": false, "a DESC, b DESC": true} {
		s := made(t, "CREATE TABLE t (a TEXT, b TEXT COLLATE NOCASE)", "CREATE INDEX i ON t ("+columns+")")
		if got := sourcetest.OrdersByKey(t, s, observer.Query{Table: "t", Key: []string{"a", "b"}}); got != want {
			t.Errorf("%s: an index serves: %t", columns, got)
		}
	}
}

// Columns may hold values of any class, whatever they were declared as, and NULL in
// what is called a primary key.
func TestReadByKey(t *testing.T) {
	t.Parallel()
	const mixed = "NULL,-1,0,0.5,5,7,10,9007199254740993,1e300,9e999,-9e999,'5','a','A','b','10 ','it''s','+Inf',x'00',x'35',x'ff'"
	for column, values := range map[string]string{
		"INTEGER": mixed, "INT": mixed, "REAL": mixed, "NUMERIC": mixed, "DECIMAL(10,2)": mixed, "DATETIME": mixed + ",'2024-05-01 10:00:00'",
		"TEXT": mixed, "VARCHAR(9) COLLATE NOCASE": mixed, "TEXT COLLATE RTRIM": mixed + ",'a '",
	} {
		for _, primary := range []string{"PRIMARY KEY (k, n)", "UNIQUE (k, n)"} {
			t.Run(column+" "+primary, func(t *testing.T) {
				t.Parallel()
				statements := []string{"CREATE TABLE t (k " + column + ", n INT NOT NULL, at TEXT DEFAULT '2024-05-01 10:00:00', " + primary + ")"}
				for _, value := range strings.Split(values, ",") {
					for _, n := range []string{"2", "10"} {
						statements = append(statements, "INSERT OR IGNORE INTO t (k, n) VALUES ("+value+", "+n+")")
					}
				}
				s := made(t, statements...)
				keys := sourcetest.ReadByKey(t, s, observer.Query{Table: "t", Key: []string{"k", "n"}})
				if len(keys) < 20 || keys[0] != "" || slices.Contains(keys[2:], "") {
					t.Errorf("keys = %q", keys)
				}
			})
		}
	}
}

// NULL comes first, so that it stands behind a key only where a column before it
// is greater.
func TestReadByKeyWithNull(t *testing.T) {
	t.Parallel()
	s := made(t, "CREATE TABLE t (a INT, b TEXT, c INT, at REAL DEFAULT 1714557600.25, PRIMARY KEY (a, b, c))",
		"INSERT INTO t (a, b, c) VALUES (1,'b',2),(1,'b',NULL),(1,NULL,7),(2,NULL,NULL),(2,'a',1),(NULL,'b',2),(3,NULL,1),(3,'c',NULL),(3,'d',1)")
	keys := sourcetest.ReadByKey(t, s, observer.Query{Table: "t", Key: []string{"b", "a", "c"}})
	if want := []string{"", "", "", "b/1/2", "", "a/2/1", "", "", "d/3/1"}; !slices.Equal(keys, want) {
		t.Errorf("keys = %q, want %q", keys, want)
	}
}

// Keys that are equal for a collation come again.
func TestReadByKeyOfEqualKeys(t *testing.T) {
	t.Parallel()
	s := made(t, "CREATE TABLE t (k TEXT COLLATE NOCASE, at INT DEFAULT 1714557600)", "CREATE INDEX i ON t (k)", "INSERT INTO t (k) VALUES ('b'), ('a'), ('A'), ('c')")
	q := observer.Query{Table: "t", Key: []string{"k"}}
	sourcetest.ReadByKey(t, s, q)
	rows, err := s.Read(t.Context(), q, observer.Range{ByKey: true, Key: "A"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	seen := 0
	for rows.Next() {
		seen++
	}
	if seen != 4 || rows.Err() != nil {
		t.Errorf("%d rows of 4, %v", seen, rows.Err())
	}
}

// The columns of views and queries need not compare as their types say.
func TestReadGoesOnAmongRowsOfOneTimestamp(t *testing.T) {
	t.Parallel()
	s := made(t, "CREATE TABLE t (k INT, name TEXT, bare, at TEXT)", "CREATE VIEW v AS SELECT k + 0 AS k, at FROM t")
	for _, test := range []struct {
		q    observer.Query
		want bool
	}{
		{observer.Query{Table: "t", Key: []string{"k", "name"}}, true},
		{observer.Query{Table: "t", Key: []string{"bare"}}, false},
		{observer.Query{Table: "v", Key: []string{"k"}}, false},
		{observer.Query{SQL: "SELECT * FROM t", Key: []string{"k"}}, false},
	} {
		test.q.Timestamp = "at"
		if got := sourcetest.TiedByKey(t, s, test.q); got != test.want {
			t.Errorf("%s%s, key %s: %t", test.q.Table, test.q.SQL, test.q.Key, got)
		}
	}
}
