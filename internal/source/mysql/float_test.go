package mysql_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// randomFloats are finite bit patterns, integers, decimals of few digits and of many,
// and what lies where the server's notation changes.
func randomFloats(random *rand.Rand, n int) []float32 {
	values := make([]float32, 0, n)
	for len(values) < n {
		v := []float64{
			float64(math.Float32frombits(random.Uint32())),
			float64(random.IntN(1<<27)) / 4,
			float64(random.IntN(1e6)) / math.Pow10(random.IntN(12)),
			float64(random.IntN(1e9)) / math.Pow10(random.IntN(12)),
			-random.Float64() * math.Pow10(random.IntN(4)+14),
			random.Float64() * math.Pow10(-random.IntN(4)-13),
		}[len(values)%6]
		if f := float32(v); !math.IsNaN(v) && !math.IsInf(float64(f), 0) {
			values = append(values, f)
		}
	}
	return values
}

// fill makes a table of literals by their number.
func fill(t *testing.T, conn *sql.Conn, table, kind string, literals map[int]string) {
	t.Helper()
	exec(t, conn, "CREATE TABLE "+table+" (id int PRIMARY KEY, v "+kind+" NOT NULL)")
	var rows []string
	for id, literal := range literals {
		rows = append(rows, fmt.Sprintf("(%d, %s)", id, literal))
	}
	exec(t, conn, "INSERT INTO "+table+" VALUES "+strings.Join(rows, ", "))
}

// texts runs a SELECT of an integer and a text.
func texts(t *testing.T, conn *sql.Conn, query string) map[int]string {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := make(map[int]string)
	for rows.Next() {
		var id int
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			t.Fatal(err)
		}
		found[id] = text
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func single(t *testing.T, text string) float32 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 32)
	if err != nil {
		t.Errorf("%q: %v", text, err)
	}
	return float32(v)
}

// A FLOAT is the server's text where that gives the value back, and otherwise the
// shortest that does, as the server writes a DOUBLE of so many digits.
func TestFloats(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	writer, s := connect(t, url), open(t, mysql.Options{URL: url})
	values := randomFloats(rand.New(rand.NewPCG(1, 2)), 5000)
	literals := make(map[int]string)
	for id, v := range values {
		literals[id] = strconv.FormatFloat(float64(v), 'e', -1, 64)
	}
	fill(t, writer, "floats", "float", literals)
	rows := sourcetest.ReadAll(t, s, observer.Query{Table: "floats", Key: []string{"id"}}, observer.Range{})
	if len(rows) != len(values) {
		t.Fatalf("%d rows of %d", len(rows), len(values))
	}
	server := texts(t, writer, "SELECT id, CAST(v AS CHAR) FROM floats")
	longer, shortest := make(map[int]string), make(map[int]string)
	for _, row := range rows {
		var data struct {
			ID int
			V  json.Number
		}
		if err := json.Unmarshal(row.Data, &data); err != nil || row.Err != nil {
			t.Fatalf("%s: %v, %v", row.Data, err, row.Err)
		}
		text, six, v := data.V.String(), server[data.ID], values[data.ID]
		switch exact := single(t, six) == v; {
		case single(t, text) != v:
			t.Fatalf("%v: %s is another value", v, text)
		case exact && text != six:
			t.Fatalf("%v: %s, want %s as the server has it", v, text, six)
		case !exact:
			longer[data.ID], shortest[data.ID] = text, strconv.FormatFloat(float64(v), 'e', -1, 32)
		}
	}
	if len(longer) < 500 || len(longer) > len(values)-500 {
		t.Fatalf("six digits do not tell %d values of %d", len(longer), len(values))
	}
	fill(t, writer, "doubles", "double", shortest)
	for id, want := range texts(t, writer, "SELECT id, CAST(v AS CHAR) FROM doubles") {
		if longer[id] != want {
			t.Errorf("%v: %s, want %s as the server writes so many digits", values[id], longer[id], want)
		}
	}
}

// What tells the value keeps the form that the column's type gives it, in tables, views
// and queries.
func TestFloatsOfAllForms(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	writer, s := connect(t, url), open(t, mysql.Options{URL: url})
	for n, test := range []struct{ kind, value, want string }{
		{"float", "1234567", "1234567"}, {"float", "-1234568", "-1234568"}, {"float", "0.1", "0.1"}, {"float", "-0e0", "0"},
		{"float", "123456789e6", "123456790000000"}, {"float", "1234567e9", "1.234567e15"}, {"float", "1e15", "1e15"}, {"float", "1e14", "100000000000000"},
		{"float", "1.2345678e-15", "0.0000000000000012345678"}, {"float", "1.2345678e-16", "1.2345679e-16"},
		{"float", "3.4028234663852886e38", "3.4028235e38"}, {"float", "-1.1754943508222875e-38", "-1.1754944e-38"},
		{"float", "1.401298464324817e-45", "1.4013e-45"}, {"float", "-1.1754942106924411e-38", "-1.1754942e-38"},
		{"float unsigned", "16777215", "16777215"}, {"float zerofill", "1234567", "1234567"}, {"float zerofill", "1.5", "1.5"},
		{"float(7,2)", "0.1", "0.10"}, {"float(7,2)", "-99999.99", "-99999.99"}, {"float(10,3) zerofill", "1234567.125", "1234567.125"}, {"float(9,0)", "123456789", "123456792"},
		{"double", "-1.2345678901234567e-300", "-1.2345678901234568e-300"}, {"double(20,5)", "0.1", "0.10000"}, {"double", "1234567", "1234567"},
	} {
		table := fmt.Sprintf("t%d", n)
		exec(t, writer, "CREATE TABLE "+table+" (id int PRIMARY KEY, v "+test.kind+")")
		exec(t, writer, "INSERT INTO "+table+" VALUES (1, "+test.value+"), (2, NULL)")
		exec(t, writer, "CREATE VIEW v"+table+" AS SELECT id, v FROM "+table)
		for _, q := range []observer.Query{
			{Table: table}, {Table: "v" + table}, {SQL: "SELECT * FROM " + table}, {SQL: "SELECT DISTINCT id, v FROM " + table}, {SQL: "SELECT id, MAX(v) AS v FROM " + table + " GROUP BY id"},
			{SQL: "SELECT * FROM " + table + " UNION SELECT * FROM " + table},
		} {
			q.Key, q.Columns = []string{"id"}, []string{"v"}
			found := make(map[string]bool)
			for _, row := range sourcetest.ReadAll(t, s, q, observer.Range{}) {
				found[string(row.Data)] = row.Err == nil
			}
			if len(found) != 2 || !found[`{"v":`+test.want+`}`] || !found[`{"v":null}`] {
				t.Errorf("%s %s: %v of %s%s, want %s", test.kind, test.value, found, q.Table, q.SQL, test.want)
			}
		}
	}
}

// Where the server has to sort rows in a table of its own, that has room for all
// digits.
func TestFloatsSortedApart(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	writer, s := connect(t, url), open(t, mysql.Options{URL: url})
	exec(t, writer, "CREATE TABLE moves (id int PRIMARY KEY, part int NOT NULL, at datetime NOT NULL)")
	exec(t, writer, "INSERT INTO moves VALUES (1, 2, '2024-05-02'), (2, 1, '2024-05-01')")
	for n, test := range []struct{ kind, value, want string }{
		{"float", "-1.2345678e-15", "-0.0000000000000012345678"}, {"float(7,2)", "-99999.99", "-99999.99"},
		{"double", "-2.2250738585072014e-308", "-2.2250738585072014e-308"}, {"double", "-1.2345678901234568e-15", "-0.0000000000000012345678901234568"},
		{"double(8,3)", "-99999.999", "-99999.999"}, {"double(255,30)", "-1e224", "-1" + strings.Repeat("0", 224) + "." + strings.Repeat("0", 30)},
		{"float(255,30)", "-1e38", "-99999996802856920000000000000000000000." + strings.Repeat("0", 30)},
	} {
		table := fmt.Sprintf("t%d", n)
		exec(t, writer, "CREATE TABLE "+table+" (id int PRIMARY KEY, v "+test.kind+")")
		exec(t, writer, "INSERT INTO "+table+" VALUES (1, "+test.value+"), (2, 0)")
		q := observer.Query{SQL: "SELECT t.id, t.v, m.at FROM " + table + " t STRAIGHT_JOIN moves m ON m.part = t.id", Key: []string{"id"}, Timestamp: "at", Columns: []string{"v"}}
		text, err := s.SQL(t.Context(), q, observer.Range{})
		if plan := explain(t, writer, text.Full); err != nil || !strings.Contains(plan, "Using temporary") {
			t.Fatalf("the rows are not sorted in a table: %s, %v", plan, err)
		}
		rows := sourcetest.ReadAll(t, s, q, observer.Range{})
		if want := `{"v":` + test.want + `}`; len(rows) != 2 || string(rows[0].Data) != want || rows[0].Err != nil {
			t.Errorf("%s %s: %s, %v, want %s", test.kind, test.value, rows[0].Data, rows[0].Err, want)
		}
	}
}

// Values of the same first digits are told apart in the search for equal keys.
func TestKeysOfLongDoubles(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	writer, s := connect(t, url), open(t, mysql.Options{URL: url})
	exec(t, writer, "CREATE TABLE t (v double(8,3) NOT NULL)")
	exec(t, writer, "INSERT INTO t VALUES (-99999.991), (-99999.992)")
	if d, err := s.Describe(t.Context(), observer.Query{Table: "t", Key: []string{"v"}}); err != nil || d.KeyUnique != source.Unknown {
		t.Errorf("unique %s, %v, want %s", d.KeyUnique, err, source.Unknown)
	}
}

// A FLOAT is refused in a key where there is somebody to tell. Streams that have one
// go on: no two values share a key.
func TestFloatKeys(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	writer, s := connect(t, url), open(t, mysql.Options{URL: url})
	exec(t, writer, "CREATE TABLE scales (part int NOT NULL, weight float NOT NULL, price double NOT NULL, at datetime NOT NULL, KEY (part, weight))")
	exec(t, writer, `INSERT INTO scales VALUES (1, 1234567, 0.1, '2024-05-01'), (1, 1234568, 0.10000000000000002, '2024-05-01'), (1, 0.1, 1e300, '2024-05-01')`)
	exec(t, writer, "CREATE VIEW shown AS SELECT * FROM scales")
	if found := texts(t, writer, "SELECT part, weight FROM scales WHERE weight = 0.1"); len(found) != 0 {
		t.Errorf("the server finds %v by its text", found)
	}
	if found := texts(t, writer, "SELECT part, price FROM scales WHERE price = 0.10000000000000002"); len(found) != 1 {
		t.Errorf("the server finds %v by the text of a DOUBLE", found)
	}
	for _, from := range []observer.Query{{Table: "scales"}, {Table: "shown"}, {SQL: "SELECT * FROM scales"}} {
		for _, timestamp := range []string{"", "at"} {
			q := from
			q.Key, q.Timestamp = []string{"part", "weight"}, timestamp
			_, err := s.Describe(t.Context(), q)
			if observer.ClassOf(err) != observer.ClassQuery || !strings.Contains(err.Error(), "column weight of type float cannot be part of a key") {
				t.Errorf("%+v: Describe: %v", q, err)
			}
			if got := sortedKeys(sourcetest.ReadAll(t, s, q, observer.Range{})); got != "1/0.1 1/1234567 1/1234568" {
				t.Errorf("%+v: keys %s", q, got)
			}
			if order, err := s.KeyOrder(t.Context(), q); err != nil || order != "" {
				t.Errorf("%+v: read in the order of %q, %v", q, order, err)
			}
			q.Key = []string{"price"}
			if _, err := s.Describe(t.Context(), q); err != nil {
				t.Errorf("%+v: Describe: %v", q, err)
			}
			if got := sortedKeys(sourcetest.ReadAll(t, s, q, observer.Range{})); got != "0.1 0.10000000000000002 1e300" {
				t.Errorf("%+v: keys %s", q, got)
			}
			// What the refusal says to write.
			q.Table, q.SQL = "", "SELECT part, CAST(weight AS DECIMAL(20,6)) AS weight, at FROM scales"
			q.Key = []string{"weight"}
			if _, err := s.Describe(t.Context(), q); err != nil {
				t.Errorf("%+v: Describe: %v", q, err)
			}
			if got := sortedKeys(sourcetest.ReadAll(t, s, q, observer.Range{})); got != "0.1 1234567 1234568" {
				t.Errorf("%+v: keys %s", q, got)
			}
		}
	}
}

func sortedKeys(rows []observer.Row) string {
	var keys []string
	for _, row := range rows {
		keys = append(keys, row.Key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}
