package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestKeyOrder(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: url})
	writer := connect(t, url)
	exec(t, writer, "CREATE DOMAIN given AS int NOT NULL") // NULL gets past it: INSERT INTO t VALUES ((SELECT k FROM t WHERE false)).
	for n, test := range []struct {
		columns, index string
		want           bool
	}{
		{"k int PRIMARY KEY", "", true},
		{"k int NOT NULL", "t (k)", true},
		{"k int NOT NULL, n int", "t (k, n)", true},
		{"k int NOT NULL, n int", "t (k) INCLUDE (n)", true},
		{"k int NOT NULL, n int", "t (n) INCLUDE (k)", false},
		{"k int NOT NULL, n int", "t (n, k)", false},
		{"k int", "t (k)", false},
		{"k given", "t (k)", false},
		{"k int UNIQUE", "", false},
		{"k int UNIQUE", "t (k NULLS FIRST)", false},
		{"k int NOT NULL, n int", "t (k) WHERE n > 0", false},
		{"k int NOT NULL", "t (k DESC)", false},
		{"k int NOT NULL", "t (k NULLS FIRST)", false},
		{"k int NOT NULL", "t ((k + 0))", false},
		{"k int NOT NULL", "t USING hash (k)", false},
		{"k int NOT NULL", "t USING brin (k)", false},
		{"k text NOT NULL", "t (k)", true},
		{"k text NOT NULL", `t (k COLLATE "POSIX")`, false},
		{`k text COLLATE "C" NOT NULL`, "t (k)", true},
		{`k text COLLATE "C" NOT NULL`, `t (k COLLATE "default")`, false},
		{"k text NOT NULL", "t (k text_pattern_ops)", false},
		{"k varchar(9) NOT NULL", "t (k varchar_pattern_ops)", false},
	} {
		table := fmt.Sprintf("t%d", n)
		exec(t, writer, "CREATE TABLE "+table+" ("+test.columns+")")
		if test.index != "" {
			exec(t, writer, "CREATE INDEX ON "+strings.Replace(test.index, "t ", table+" ", 1))
		}
		if got := sourcetest.OrdersByKey(t, s, observer.Query{Table: table, Key: []string{"k"}}); got != test.want {
			t.Errorf("(%s), index on %s: an index serves: %t", test.columns, test.index, got)
		}
	}
}

func TestKeyOrderOfOtherRelations(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: url})
	writer := connect(t, url)
	exec(t, writer, `CREATE TABLE twice (k int NOT NULL); INSERT INTO twice VALUES (1), (1);
		CREATE TABLE parent (k int PRIMARY KEY); CREATE TABLE child (PRIMARY KEY (k)) INHERITS (parent);
		CREATE MATERIALIZED VIEW m AS SELECT k FROM child; CREATE UNIQUE INDEX ON m (k);
		CREATE TABLE parts (k int PRIMARY KEY) PARTITION BY HASH (k);
		CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
		CREATE TABLE bare (k int NOT NULL) PARTITION BY HASH (k);
		CREATE TABLE bare_part PARTITION OF bare FOR VALUES WITH (MODULUS 1, REMAINDER 0); CREATE INDEX ON bare_part (k)`)
	if _, err := writer.Exec(t.Context(), "CREATE UNIQUE INDEX CONCURRENTLY ON twice (k)"); err == nil {
		t.Fatal("an index is valid that cannot be")
	}
	for table, want := range map[string]bool{
		"twice": false, "parent": false, "child": true, "m": false, "parts": true, "part": true, "bare": false, "bare_part": true,
	} {
		if got := sourcetest.OrdersByKey(t, s, observer.Query{Table: table, Key: []string{"k"}}); got != want {
			t.Errorf("%s: an index serves: %t", table, got)
		}
	}
}

// Keys of each type are read from each of their values on.
func TestReadByKey(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	writer := connect(t, url)
	exec(t, writer, `CREATE DOMAIN sku AS varchar(9) CHECK (VALUE <> ''); CREATE DOMAIN nr AS int; CREATE TYPE state AS ENUM ('new', 'done', 'a/b', 'Z');
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Europe/Berlin''', current_database());
		EXECUTE format('ALTER DATABASE %I SET bytea_output = ''escape''', current_database());
		EXECUTE format('ALTER DATABASE %I SET extra_float_digits = -5', current_database()); END $$`)
	s := open(t, postgres.Options{URL: url})
	for n, test := range []struct{ column, values string }{
		{"smallint", "-1,0,9,10"},
		{"bigint", "-9007199254740993,9007199254740992,9007199254740993,0"},
		{"numeric", "-1.5,0,0.50,10,9,1e-30,1e40,'NaN','-Infinity','Infinity'"},
		{"real", "0.1,0.3,1e30,'NaN','Infinity','-Infinity',-0.0"},
		{"double precision", "0.1,0.30000000000000004,0.3,1e300,5e-324,'NaN','Infinity','-Infinity'"},
		{"boolean", "false,true"},
		{"text", "'a','A','b','a b','a-b','ab','ß','ss','日本','~','it''s','\\x','10','9'"},
		{`text COLLATE "C"`, "'a','A','b','a b','ß','日本','~'"},
		{"char(5)", "'a','a b',E'a\\t','12345','b'"},
		{`"char"`, "'a','b'"},
		{"name", "'a','B'"},
		{"sku", "'a','B','c'"},
		{"nr", "9,10,-1"},
		{"state", "'new','done','a/b','Z'"},
		{"uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11','00000000-0000-0000-0000-000000000000','ffffffff-ffff-ffff-ffff-ffffffffffff'"},
		{"bytea", `'\x00','\x0001','\x61','\x5c','\xff'`},
		{"timestamptz", "'2024-10-27 00:30:00Z','2024-10-27 01:30:00Z','2024-10-27 00:30:00.000001Z','2024-03-31 00:59:59Z','2024-03-31 01:00:00Z','infinity','-infinity','0044-03-15 00:00:00Z BC','1890-01-01 00:00:00Z'"},
		{"timestamp", "'2024-10-27 02:30:00','2024-10-27 02:30:00.5','infinity','0044-03-15 BC'"},
		{"date", "'2024-02-29','infinity','0044-03-15 BC','10000-01-01','9999-12-31'"},
		{"time", "'00:00','24:00','12:30:00.5'"},
		{"timetz", "'12:30+02','11:30+00'"},
		{"interval", "'1 mon','29 days','36 hours','-1 day'"},
		{"inet", "'10.0.0.1','10.0.0.0/8','::1'"},
		{"jsonb", `'{"a":1}','[1, 2]','null'`},
		{"int[]", "'{1,2}','{1,10}','{}'"},
		{"int4range", "'[1,5)','empty','(,3]'"},
		{"money", "'1.50','10','9'"},
		{"bit(3)", "B'101',B'010'"},
		{"oid", "7,4294967295"},
	} {
		t.Run(test.column, func(t *testing.T) {
			t.Parallel()
			table := fmt.Sprintf("t%d", n)
			conn := connect(t, url)
			exec(t, conn, "CREATE TABLE "+table+" (k "+test.column+" NOT NULL, n int NOT NULL, at timestamptz DEFAULT '2024-05-01 10:00:00.000001Z', PRIMARY KEY (k, n)) PARTITION BY HASH (n)")
			for i := range 2 {
				exec(t, conn, fmt.Sprintf("CREATE TABLE %s_%d PARTITION OF %s FOR VALUES WITH (MODULUS 2, REMAINDER %d)", table, i, table, i))
			}
			values := split(test.values)
			for _, value := range values {
				exec(t, conn, fmt.Sprintf("INSERT INTO %s VALUES (%s, 2), (%s, 10), (%s, 3)", table, value, value, value))
			}
			read := sourcetest.ReadByKey
			if test.column == "state" { // Its type is not the server's own.
				read = sourcetest.ReadByKeyAlone
			}
			keys := read(t, s, observer.Query{Table: table, Key: []string{"k", "n"}})
			if len(keys) != 3*len(values) || slices.Contains(keys, "") {
				t.Errorf("keys = %q, want %d", keys, 3*len(values))
			}
		})
	}
}

// keyValues are two values of each base type of the server that has an order.
var keyValues = map[string][2]string{
	`"char"`: {"a", "b"}, "bigint": {"-1", "9"}, "bit": {"0", "1"}, "bit varying": {"0", "01"}, "boolean": {"f", "t"}, "bytea": {`\\x00`, `\\xff`},
	"character": {"a", "b"}, "character varying": {"a", "b c"}, "cidr": {"10.0.0.0/8", "::/0"}, "date": {"2024-02-29", "infinity"}, "double precision": {"0.1", "NaN"},
	"inet": {"10.0.0.1", "::1"}, "integer": {"-1", "9"}, "interval": {"29 days", "1 mon"}, "jsonb": {"1", "[1]"}, "macaddr": {"08:00:2b:01:02:03", "08:00:2b:01:02:04"},
	"macaddr8": {"08:00:2b:01:02:03:04:05", "08:00:2b:01:02:03:04:06"}, "money": {"1.50", "10"}, "name": {"a", "b"}, "numeric": {"1.50", "NaN"}, "oid": {"7", "4294967295"},
	"pg_dependencies": {}, "pg_mcv_list": {}, "pg_ndistinct": {}, "pg_node_tree": {}, "pg_lsn": {"0/1", "16/B374D848"}, "real": {"0.1", "1e30"}, "regclass": {"pg_class", "pg_type"}, "regcollation": {`"C"`, `"POSIX"`}, "regconfig": {"english", "simple"},
	"regdictionary": {"english_stem", "simple"}, "regnamespace": {"public", "pg_catalog"}, "regoper": {"!!", "||/"}, "regoperator": {"+(integer,integer)", "-(integer,integer)"},
	"regproc": {"boolin", "boolout"}, "regprocedure": {"abs(integer)", "abs(numeric)"}, "regrole": {"pg_monitor", "pg_read_all_stats"}, "regtype": {"integer", "text"},
	"smallint": {"-1", "9"}, "text": {"a", "ü"}, "tid": {"(0,1)", "(7,2)"}, "time without time zone": {"00:00", "24:00"}, "time with time zone": {"12:30+02", "11:30+00"},
	"timestamp without time zone": {"2024-05-01 10:00", "infinity"}, "timestamp with time zone": {"2024-05-01 10:00Z", "2024-05-01 10:00:00.5Z"},
	"tsquery": {"a", "b & c"}, "tsvector": {"a b", "c"}, "uuid": {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ffffffff-ffff-ffff-ffff-ffffffffffff"}, "xid8": {"1", "18446744073709551615"},
}

// A read goes on from a key of any type that may have an index, or from none, of which
// validate tells the name: rows, and names of the catalogue.
func TestKeysOfEveryType(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	writer, s := connect(t, url), open(t, postgres.Options{URL: url})
	n := 0
	check := func(column string, oneWay bool, values ...string) {
		n++
		table := fmt.Sprintf("t%d", n)
		rows := "('" + strings.Join(values, "', '2024-05-01 10:00Z'), ('") + "', '2024-05-01 10:00Z')"
		exec(t, writer, fmt.Sprintf("CREATE TABLE %s (k %s PRIMARY KEY, at timestamptz NOT NULL); INSERT INTO %[1]s VALUES %[3]s", table, column, rows))
		q := observer.Query{Table: table, Key: []string{"k"}, Timestamp: "at"}
		d, err := s.Describe(t.Context(), q)
		if err != nil || d.KeyOneWay != "" != oneWay || d.KeyOrdered == oneWay || oneWay && !strings.HasPrefix(d.KeyOneWay, "column k of type ") {
			t.Errorf("%s: description %+v, %v", column, d, err)
		}
		tied := sourcetest.TiedByKey(t, s, q)
		_, err = sourcetest.TryRead(s, q, observer.Range{Part: observer.PartKey, Key: values[0]})
		q.Timestamp = ""
		switch {
		case oneWay && (tied || !errors.Is(err, observer.ErrNoKeyLookup)):
			t.Errorf("%s: rows of one timestamp are parted by the key: %t; a row of one key: %v", column, tied, err)
		case oneWay:
			if all := sourcetest.ReadAll(t, s, q, observer.Range{}); len(all) != len(values) {
				t.Errorf("%s: %d rows", column, len(all))
			}
		case tied:
			sourcetest.ReadByKey(t, s, q)
		default:
			sourcetest.ReadByKeyAlone(t, s, q)
		}
	}
	rows, err := writer.Query(t.Context(), "SELECT format_type(oid, NULL) FROM pg_type WHERE typtype = 'b' AND typelem = 0 AND oid < 10000")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		values, known := keyValues[name]
		if _, err := writer.Exec(t.Context(), "CREATE TEMPORARY TABLE tried (k "+name+" PRIMARY KEY)"); err != nil {
			continue // It has no order.
		}
		exec(t, writer, "DROP TABLE tried")
		if !known {
			t.Errorf("there is no value of type %s", name)
		}
		if values[0] == "" {
			continue // The server accepts none.
		}
		named := strings.HasPrefix(name, "reg")
		check(name, named, values[:]...)
		if !named && name != "integer" && name != "money" {
			continue
		}
		exec(t, writer, fmt.Sprintf("CREATE DOMAIN d%d AS %s", n, name))
		check(fmt.Sprint("d", n), named, values[:]...)
		check(name+"[]", named, "{}", `{"`+strings.ReplaceAll(values[1], `"`, `\"`)+`"}`)
	}
	exec(t, writer, `CREATE TYPE state AS ENUM ('new', 'done'); CREATE TYPE pair AS (a int, b text); CREATE DOMAIN known AS pair CHECK (VALUE IS NOT NULL); CREATE DOMAIN nested AS known;
		CREATE TYPE texts AS RANGE (subtype = text)`)
	check("state", false, "new", "done")
	check("state[]", false, "{}", "{done}")
	check("texts", false, "[a,b)", "empty")
	check("texts_multirange", false, "{}", "{[a,b)}")
	check("pair", true, "(1,a)", "(2,b)")
	check("known", true, "(1,a)", "(2,b)")
	check("nested", true, "(1,a)", "(2,b)")
	check("pair[]", false, "{}", `{"(1,a)"}`)
	check("int4multirange", false, "{}", "{[1,5)}")
	for _, sql := range []string{"SELECT ROW(1, 'a') AS k, now() AS at", "SELECT ROW(1, 'a')::nested AS k, now() AS at", "SELECT c AS k, now() AS at FROM pg_am c"} {
		q := observer.Query{SQL: sql, Key: []string{"k"}, Timestamp: "at"}
		d, err := s.Describe(t.Context(), q)
		if err != nil || d.KeyOneWay == "" || sourcetest.TiedByKey(t, s, q) {
			t.Errorf("%s: rows of one timestamp are parted by the key, which goes on: %q, %v", sql, d.KeyOneWay, err)
		}
		if _, err := sourcetest.TryRead(s, q, observer.Range{Part: observer.PartKey, Key: "(1,a)"}); !errors.Is(err, observer.ErrNoKeyLookup) {
			t.Errorf("%s: a row of one key: %v", sql, err)
		}
	}
}

// split cuts at the commas that are in no quotes.
func split(values string) (all []string) {
	quoted, start := false, 0
	for i, c := range values {
		switch {
		case c == '\'':
			quoted = !quoted
		case c == ',' && !quoted:
			all, start = append(all, values[start:i]), i+1
		}
	}
	return append(all, values[start:])
}

// A read by key takes the index, though to sort all rows seems to cost less: they
// are in no order on disk, and most of them are to be read.
func TestReadByKeyTakesTheIndex(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	writer := connect(t, url)
	exec(t, writer, `CREATE TABLE wide (k int PRIMARY KEY, filler text);
		INSERT INTO wide SELECT n * 7919 % 10007, repeat(md5(n::text), 3) FROM generate_series(1, 10006) n`)
	exec(t, writer, "VACUUM ANALYZE wide")
	var plan string
	if err := writer.QueryRow(t.Context(), "EXPLAIN SELECT * FROM wide WHERE k >= 5 ORDER BY k").Scan(&plan); err != nil || !strings.HasPrefix(plan, "Sort") {
		t.Fatalf("the planner would not sort: %s, %v", plan, err)
	}
	s := open(t, postgres.Options{URL: url})
	q := observer.Query{Table: "wide", Key: []string{"k"}}
	rows, err := s.Read(t.Context(), q, observer.Range{ByKey: true, Key: "5"})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for rows.Next() {
		count++
	}
	if rows.Err() != nil || rows.Close() != nil || count != 10002 {
		t.Fatalf("%d rows, %v", count, rows.Err())
	}
	_ = s.Close() // A session reports what it has scanned when it ends.
	var sequential, indexed int
	waittest.Eventually(t, 30*time.Second, func() error {
		err := writer.QueryRow(t.Context(), "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'wide'").Scan(&sequential, &indexed)
		if err == nil && sequential+indexed < count {
			err = fmt.Errorf("%d of %d rows are reported as read", sequential+indexed, count)
		}
		return err
	})
	if sequential > 0 {
		t.Errorf("%d rows were read by a scan of the table, %d by the index", sequential, indexed)
	}
}

// A primary key is one for all rows that a read of the table returns.
func TestPrimaryKeyHoldsForAllRows(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: url})
	exec(t, connect(t, url), `CREATE TABLE parent (k int PRIMARY KEY); CREATE TABLE child (PRIMARY KEY (k)) INHERITS (parent);
		INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1);
		CREATE TABLE parts (k int PRIMARY KEY) PARTITION BY HASH (k);
		CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
		CREATE TABLE bare (k int NOT NULL) PARTITION BY HASH (k);
		CREATE TABLE bare_part PARTITION OF bare FOR VALUES WITH (MODULUS 1, REMAINDER 0);
		ALTER TABLE ONLY bare ADD PRIMARY KEY (k); INSERT INTO bare VALUES (1), (1);
		CREATE TABLE more (k int, "L" int, v int, PRIMARY KEY ("L", k) INCLUDE (v) DEFERRABLE)`)
	for table, want := range map[string]string{"parent": "", "child": "k", "parts": "k", "part": "k", "bare": "", "bare_part": "", "more": "L k"} {
		key, err := s.PrimaryKey(t.Context(), observer.Query{Table: table})
		if got := strings.Join(key, " "); err != nil || got != want {
			t.Errorf("%s: the primary key is %q, %v; want %q", table, got, err, want)
		}
	}
	d, err := s.Describe(t.Context(), observer.Query{Table: "parent", Key: []string{"k"}})
	if err != nil || d.KeyUnique != source.No {
		t.Errorf("the key of a table that others inherit from: %v, %v; want that it is not unique", d.KeyUnique, err)
	}
}
