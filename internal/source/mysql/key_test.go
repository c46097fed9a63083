package mysql_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

func keyed(t *testing.T) (*mysql.Source, *sql.Conn) {
	t.Helper()
	url := mariatest.New(t)
	writer := connect(t, url)
	exec(t, writer, "SET sql_mode = 'ALLOW_INVALID_DATES', character_set_client = 'utf8mb4'")
	return open(t, mysql.Options{URL: url}), writer
}

// Each column that may be gone on from is read from each of its values on.
func TestReadByKey(t *testing.T) {
	t.Parallel()
	const words = `'a','A','ä','Ä','ae','ss','ß','z','Z ','a b','a''b','a\\b','_','%','1','10','9','é','?'`
	for column, values := range map[string]string{
		"tinyint":                           "-128,-1,0,5,127",
		"bigint unsigned":                   "0,1,9223372036854775807,9223372036854775808,18446744073709551615",
		"int(8) zerofill":                   "0,7,10,4294967295",
		"decimal(65,30)":                    "99999999999999999999999999999999999.999999999999999999999999999999,99999999999999999999999999999999999.999999999999999999999999999998,-1.5,0,0.000000000000000000000000000001",
		"decimal(10,0) unsigned zerofill":   "0,9,10",
		"bit(64)":                           "0,1,9223372036854775808,18446744073709551615",
		"bit(1)":                            "0,1",
		"date":                              "'2024-02-29','2024-02-31','2024-03-01','0000-00-00','2024-00-00','2024-02-00','9999-12-31'",
		"datetime":                          "'2024-02-29 23:59:59','2024-02-31 00:00:00','2024-02-31 10:00:00','2024-03-01','0000-00-00','2024-00-00'",
		"datetime(6)":                       "'2024-10-27 02:30:00.000001','2024-10-27 02:30:00','2024-02-31 10:00:00.5'",
		"timestamp(3)":                      "'2024-10-27 00:30:00.001','2024-10-27 01:30:00','1970-01-01 00:00:01','0000-00-00'",
		"time(3)":                           "'-10:00:00.5','-00:00:01','00:00:00','100:00:00.123','838:59:59'",
		"binary(4)":                         "X'00',X'0001',X'20',X'FFFFFFFF'",
		"varbinary(9)":                      "X'00',X'0000',X'61',X'6120',X'FF',X'27'",
		"char(9) COLLATE utf8mb4_bin":       words + ",'日本','😀'",
		"varchar(9)":                        words + ",'日本','😀'",
		"varchar(9) CHARACTER SET utf8mb3":  words + ",'日本'",
		"varchar(9) CHARACTER SET latin1":   words,
		"char(9) COLLATE latin1_german2_ci": words,
		"char(9) COLLATE latin1_bin":        words,
		"varchar(9) CHARACTER SET ascii":    "'a','A','b','-','f47ac10b'",
		"varchar(9) COLLATE utf8mb4_unicode_520_ci":      words + ",'日本','😀'",
		"varchar(9) COLLATE utf8mb4_nopad_bin":           words + ",'a ','a\t'",
		"varchar(9) COLLATE utf8mb3_unicode_nopad_ci":    words + ",'a ','a\t'",
		"varchar(9) COLLATE utf8mb4_swedish_ci":          words,
		"varchar(9) COLLATE utf8mb4_uca1400_ai_ci":       words,
		"varchar(9) COLLATE utf8mb3_general_mysql500_ci": words,
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			s, writer := keyed(t)
			exec(t, writer, "SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', explicit_defaults_for_timestamp = 1")
			exec(t, writer, "CREATE TABLE t (k "+column+" NOT NULL, n int NOT NULL, at datetime(6) DEFAULT '2024-05-01 10:00:00.000001', KEY (k, n))")
			for n, value := range strings.Split(values, ",") {
				exec(t, writer, fmt.Sprintf("INSERT INTO t (k, n) VALUES (%s, %d), (%s, %d)", value, n, value, -n-1))
			}
			keys := sourcetest.ReadByKey(t, s, observer.Query{Table: "t", Key: []string{"k", "n"}})
			if want := 2 * len(strings.Split(values, ",")); len(keys) != want || slices.Contains(keys, "") {
				t.Errorf("keys = %q, want %d", keys, want)
			}
		})
	}
}

// All characters of latin1 come back, those too that it has none for.
func TestReadByKeyOfLatin1(t *testing.T) {
	t.Parallel()
	s, writer := keyed(t)
	exec(t, writer, "CREATE TABLE t (k char(1) COLLATE latin1_bin PRIMARY KEY, at date DEFAULT '2024-05-01')")
	for c := 0x21; c < 0x100; c++ {
		exec(t, writer, fmt.Sprintf("INSERT INTO t (k) VALUES (_latin1 X'%02X')", c))
	}
	if keys := sourcetest.ReadByKey(t, s, observer.Query{Table: "t", Key: []string{"k"}}); len(keys) != 0x100-0x21 {
		t.Errorf("%d keys: %q", len(keys), keys)
	}
}

// NULL comes first, so that it stands behind a key only where a column before it
// is greater.
func TestReadByKeyWithNull(t *testing.T) {
	t.Parallel()
	s, writer := keyed(t)
	exec(t, writer, "CREATE TABLE t (a int, b varchar(9), c int, at timestamp DEFAULT '2024-05-01 10:00:00', KEY (a, b, c))")
	exec(t, writer, "INSERT INTO t (a, b, c) VALUES (1,'b',2),(1,'b',NULL),(1,NULL,7),(2,NULL,NULL),(2,'a',1),(NULL,'b',2),(3,NULL,1),(3,'c',NULL),(3,'d',1)")
	keys := sourcetest.ReadByKey(t, s, observer.Query{Table: "t", Key: []string{"b", "a", "c"}})
	if want := []string{"", "", "", "b/1/2", "", "a/2/1", "", "", "d/3/1"}; !slices.Equal(keys, want) {
		t.Errorf("keys = %q, want %q", keys, want)
	}
}

var fewRows = regexp.MustCompile(` rows=[0-9]{1,2} `) // by the server's estimate

// A read that goes on begins at its place in the index and sorts nothing, however
// few values the first column has, and whatever other index there is.
func TestReadByKeySeeks(t *testing.T) {
	t.Parallel()
	s, writer := keyed(t)
	exec(t, writer, "CREATE TABLE t (a varchar(9) CHARACTER SET latin1 NOT NULL, b int NOT NULL, c int NOT NULL, wide char(200), KEY a_first (a, b, c), PRIMARY KEY (a, b, c))")
	exec(t, writer, "INSERT INTO t SELECT 'w', seq DIV 10, seq, REPEAT('x', 200) FROM seq_1_to_20000")
	exec(t, writer, "ANALYZE TABLE t")
	exec(t, writer, "CREATE TABLE u (id int PRIMARY KEY, a varchar(9) NOT NULL, b int, c int, wide char(200), KEY second (a, b, c))")
	exec(t, writer, "INSERT INTO u SELECT 20000 - c, a, b, c, wide FROM t")
	exec(t, writer, "ANALYZE TABLE u")
	for table, index := range map[string]string{"t": "key=PRIMARY ", "u": "key=second "} {
		q := observer.Query{Table: table, Key: []string{"a", "b", "c"}}
		for key, access := range map[string]string{"": "type=index ", "w/10/105": "type=range ", "w/1999/19990": "type=range "} {
			plan, err := s.Plan(t.Context(), q, observer.Range{ByKey: true, Key: key})
			if err != nil || plan.Sorts || !strings.Contains(plan.Text, access) || !strings.Contains(plan.Text, index) {
				t.Errorf("%s from %q: %+v, %v", table, key, plan, err)
			}
			if key == "w/1999/19990" && !fewRows.MatchString(plan.Text) {
				t.Errorf("%s: the last ten rows are read with others: %s", table, plan.Text)
			}
		}
	}
}

func TestKeyOrder(t *testing.T) {
	t.Parallel()
	s, writer := keyed(t)
	for _, test := range []struct {
		columns, options string
		want             bool
	}{
		{"k int PRIMARY KEY, n int", "", true},
		{"k int, n int, KEY (k)", "", true},
		{"k int, n int, KEY (k, n)", "", true},
		{"k int, n int, KEY (n, k)", "", false},
		{"k int, n int, KEY (k) USING HASH", "", true}, // InnoDB makes a B-tree of it
		{"k int, n int, KEY (k DESC)", "", false},
		{"k int, n int, KEY (k) IGNORED", "", false},
		{"k int, n int, KEY (k DESC), KEY (k)", "", true},
		{"k varchar(9), n int, KEY (k(3))", "", false},
		{"k varchar(9), n int, FULLTEXT KEY (k)", "", false},
		{"k text, n int, KEY (k(3))", "", false},
		{"k int, n int, KEY (k)", "ENGINE = MyISAM", true},
		{"k int, n int, KEY (k)", "ENGINE = Aria", true},
		{"k int PRIMARY KEY, n int", "ENGINE = MEMORY", false},
		{"k int, n int, KEY (k) USING BTREE", "ENGINE = MEMORY", false},
		{"k int PRIMARY KEY, n int", "WITH SYSTEM VERSIONING", true},
		{"k int PRIMARY KEY, n int", "PARTITION BY HASH (k) PARTITIONS 4", true},
		{"k enum('b', 'a') PRIMARY KEY, n int", "", false},
		{"k set('b', 'a') PRIMARY KEY, n int", "", false},
		{"k double PRIMARY KEY, n int", "", false},
		{"k year PRIMARY KEY, n int", "", false},
		{"k uuid PRIMARY KEY, n int", "", false},
		{"k inet6 PRIMARY KEY, n int", "", false},
		{"k varchar(9) CHARACTER SET cp932 PRIMARY KEY, n int", "", false},
		{"k varchar(9) CHARACTER SET latin2 PRIMARY KEY, n int", "", false},
		{"k point NOT NULL, n int, SPATIAL KEY (k)", "", false},
		{"j varchar(9), n int, k int AS (n + 1) STORED, KEY (k)", "", true},
	} {
		exec(t, writer, "CREATE OR REPLACE TABLE t ("+test.columns+") "+test.options)
		if got := sourcetest.OrdersByKey(t, s, observer.Query{Table: "t", Key: []string{"k"}}); got != test.want {
			t.Errorf("%s %s: an index serves: %t", test.columns, test.options, got)
		}
	}
	exec(t, writer, "CREATE OR REPLACE TABLE t (k int, KEY (k)) ENGINE = MyISAM")
	exec(t, writer, "ALTER TABLE t DISABLE KEYS")
	if sourcetest.OrdersByKey(t, s, observer.Query{Table: "t", Key: []string{"k"}}) {
		t.Error("an index serves that is disabled")
	}
	exec(t, writer, "CREATE OR REPLACE TABLE t (k int, PRIMARY KEY (k) USING HASH) ENGINE = MEMORY")
	if key, err := s.PrimaryKey(t.Context(), observer.Query{Table: "t"}); err != nil || !slices.Equal(key, []string{"k"}) {
		t.Errorf("of a primary key that is hashed: %q, %v", key, err)
	}
}

// The server may sort by the beginning of a long text, so no read goes on from one
// among rows of one timestamp, nor from a key that does not compare with its text.
func TestReadGoesOnAmongRowsOfOneTimestamp(t *testing.T) {
	t.Parallel()
	s, writer := keyed(t)
	exec(t, writer, "CREATE TABLE t (at datetime NOT NULL, n int, name varchar(255), long_name varchar(256), bytes varbinary(9), state enum('b', 'a'), f double)")
	exec(t, writer, "CREATE VIEW v AS SELECT * FROM t")
	for _, test := range []struct {
		q    observer.Query
		want bool
	}{
		{observer.Query{Table: "t", Key: []string{"n", "name", "bytes"}}, true},
		{observer.Query{Table: "t", Key: []string{"n", "long_name"}}, false},
		{observer.Query{Table: "t", Key: []string{"n", "state"}}, false},
		{observer.Query{Table: "t", Key: []string{"f"}}, false},
		{observer.Query{Table: "v", Key: []string{"n", "name"}}, true},
		{observer.Query{SQL: "SELECT * FROM t", Key: []string{"n"}}, true},
		{observer.Query{SQL: "SELECT * FROM t", Key: []string{"name"}}, false},
	} {
		test.q.Timestamp = "at"
		if got := sourcetest.TiedByKey(t, s, test.q); got != test.want {
			t.Errorf("%s%s, key %s: %t", test.q.Table, test.q.SQL, test.q.Key, got)
		}
	}
}
