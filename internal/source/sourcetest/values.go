package sourcetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

func exactNumbers(t *testing.T, f Fixture) {
	const decimal = "0.100000000000000000000000000001"
	f.exec("CREATE TABLE orders (order_id {integer} PRIMARY KEY, total {decimal}, updated_at {timestamp} NOT NULL)",
		`INSERT INTO orders VALUES (9223372036854775807, '`+decimal+`', '2024-05-01 10:00:00'),
			(-9223372036854775808, NULL, '2024-05-01 10:00:01')`)
	q := orders()
	q.Columns = []string{"order_id", "total"}
	rows := f.read(t, q, "")
	if want := `{"order_id":9223372036854775807,"total":` + f.Decimal(decimal) + `}`; rows[0].data != want {
		t.Errorf("data = %s, want %s", rows[0].data, want)
	}
	if want := `{"order_id":-9223372036854775808,"total":null}`; rows[1].data != want {
		t.Errorf("data = %s, want %s", rows[1].data, want)
	}
	if rows[0].key != "9223372036854775807" {
		t.Errorf("key = %s", rows[0].key)
	}
}

// floats are texts of which each is the shortest that gives a value back: of a {float}
// in the first place, of a {double} in the second. Six digits, as some servers print,
// tell few of the former, and those of a double are too many.
var floats = [][2]string{
	{"0", "0"},
	{"0.1", "0.1"},
	{"-0.5", "-0.30000000000000004"},
	{"123456", "123456789"},
	{"1234567", "9007199254740991"},
	{"-1234568", "9007199254740992"},
	{"16777215", "123456.789012345"},
	{"16777216", "0.3333333333333333"},
	{"0.30000004", "0.3333333333333334"},
	{"98765.43", "98765.43"},
	{"-8388607.5", "1.0000000000000002"},
	{"0.00012345679", "0.00012345678901234567"},
	{"123456790000", "12345678901234567"},
	{"12345679000000000000", "-12345678901234567000"},
	{"0.000000000000000012345678", "0.000000000000000012345678901234567"},
}

func exactFloats(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE orders (order_id {integer} PRIMARY KEY, weight {float}, price {double}, updated_at {timestamp} NOT NULL)")
	for i, texts := range floats {
		f.exec(fmt.Sprintf("INSERT INTO orders VALUES (%d, %s, %s, '%s')", i, texts[0], texts[1], second(i)))
	}
	query := orders()
	query.Table, query.SQL = "", "SELECT order_id, weight, price, updated_at FROM orders"
	for _, q := range []observer.Query{orders(), query} {
		for i, r := range f.read(t, q, "") {
			var got struct{ Weight, Price json.Number }
			if err := json.Unmarshal([]byte(r.data), &got); err != nil || r.err != nil {
				t.Fatalf("row %d: %v, %v in %s", i, err, r.err, r.data)
			}
			for n, number := range []json.Number{got.Weight, got.Price} {
				want := json.Number(floats[i][n])
				if g, w := float(t, number), float(t, want); g != w {
					t.Errorf("%s arrived as %s", want, number)
				}
			}
		}
	}
}

func float(t *testing.T, number json.Number) float64 {
	t.Helper()
	v, err := number.Float64()
	if err != nil {
		t.Errorf("%q is no number: %v", number, err)
	}
	return v
}

func unicodeText(t *testing.T, f Fixture) {
	f.exec(ordersTable)
	texts := []string{"", "plain", "grüße", "日本語", "🚚 heavy", `"quoted" \ back`, "line\nbreak\ttab\r", "\x01\x1f", "\u2028<&>", "null"}
	for i, text := range texts {
		f.exec(fmt.Sprintf("INSERT INTO orders VALUES (%d, '%s', '2024-05-01 10:00:00')", i, text))
	}
	for i, r := range f.read(t, orders(), "") {
		var got struct{ Status string }
		if err := json.Unmarshal([]byte(r.data), &got); err != nil || r.err != nil {
			t.Errorf("row %d: %v, %v in %s", i, err, r.err, r.data)
		}
		if got.Status != texts[i] {
			t.Errorf("text %q arrived as %q", texts[i], got.Status)
		}
	}
}

func poisonRows(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE stock (warehouse {text}, sku {text}, note {text}, updated_at {timestamp})",
		`INSERT INTO stock VALUES ('w', 's', 'good', '2024-05-01 10:00:00')`,
		`INSERT INTO stock VALUES (NULL, 's', 'x', '2024-05-01 10:00:01')`,
		`INSERT INTO stock VALUES ('w', '', 'x', '2024-05-01 10:00:02')`,
		`INSERT INTO stock VALUES ('w', 't', 'x', `+f.BadTime+`)`)
	q := orders()
	q.Table, q.Key = "stock", []string{"warehouse", "sku"}
	want := map[string]string{"warehouse": "NULL", "sku": "empty", "updated_at": "is"}
	if f.EmptyIsNull {
		want["sku"] = "NULL"
	}
	if f.Poison != "" {
		f.exec(`INSERT INTO stock VALUES ('w', 'u', ` + f.Poison + `, '2024-05-01 10:00:03')`)
		want["note"] = "valid text"
	}
	good := 0
	for _, r := range f.read(t, q, "") {
		if r.err == nil {
			good++
			continue
		}
		for column, fault := range want {
			if strings.Contains(strings.ToLower(r.err.Error()), "column "+column+" ") && strings.Contains(r.err.Error(), fault) {
				delete(want, column)
				checkPoison(t, column, r)
			}
		}
	}
	if good != 1 || len(want) > 0 {
		t.Errorf("%d good rows, want 1; faults that were not reported: %v", good, want)
	}
}

// checkPoison checks that what can be read of a faulty row is there, and that
// nothing else is made up.
func checkPoison(t *testing.T, column string, r row) {
	t.Helper()
	if inKey := column == "warehouse" || column == "sku"; inKey != (r.key == "") {
		t.Errorf("a fault in %s left the key %q", column, r.key)
	}
	if (column == "updated_at") != (r.cursor == "") {
		t.Errorf("a fault in %s left the cursor %q", column, r.cursor)
	}
	if !json.Valid([]byte(r.data)) {
		t.Errorf("a fault in %s left the data %q", column, r.data)
	}
}

// longKey shows that a key which no index can hold is a poison row, and that
// one of a kilobyte is none.
func longKey(t *testing.T, f Fixture) {
	lengths := map[string]int{"{text}": 1025}
	if !f.EmptyIsNull { // Oracle's large objects are no keys.
		lengths["{long}"] = 20_000
	}
	for column, length := range lengths {
		table := "stock" + strings.Trim(column, "{}")
		f.exec("CREATE TABLE "+table+" (sku "+column+", updated_at {timestamp})",
			`INSERT INTO `+table+` VALUES ('`+strings.Repeat("k", 1024)+`', '2024-05-01 10:00:00')`,
			`INSERT INTO `+table+` VALUES ('`+strings.Repeat("k", length)+`', '2024-05-01 10:00:01')`)
		q := orders()
		q.Table, q.Key = table, []string{"sku"}
		rows := f.read(t, q, "")
		if len(rows) != 2 || rows[0].err != nil || rows[1].err == nil ||
			!strings.Contains(strings.ToLower(rows[1].err.Error()), "column sku makes a key longer than 1024 bytes") || rows[1].key != "" || rows[1].cursor == "" {
			t.Errorf("%s: %d rows; faults %v and %v", column, len(rows), rows[0].err, rows[1].err)
		}
	}
}

func sizeLimit(t *testing.T, f Fixture) {
	f.exec(ordersTable,
		`INSERT INTO orders VALUES (1, 'small', '2024-05-01 10:00:00')`,
		`INSERT INTO orders VALUES (2, '`+strings.Repeat("x", 200)+`', '2024-05-01 10:00:01')`,
		`INSERT INTO orders VALUES (3, 'small', '2024-05-01 10:00:02')`)
	q := orders()
	q.MaxRowBytes = 150
	rows := f.read(t, q, "")
	if keys(rows) != "1 2 3" || rows[0].err != nil || rows[2].err != nil {
		t.Fatalf("rows = %+v, want three, the first and the last of them good", rows)
	}
	if r := rows[1]; r.err == nil || !strings.Contains(r.err.Error(), "larger than 150 bytes") || r.data != "" || r.cursor == "" {
		t.Errorf("row = %+v, want it poison for its size, without data", r)
	}
	// The key behind the data does not count.
	q.Columns, q.MaxRowBytes = []string{"status"}, len(`{"status":"small"}`)
	if r := f.read(t, q, "")[0]; r.err != nil || !strings.Contains(strings.ToLower(r.full), `"order_id":1}`) {
		t.Errorf("row = %+v, want it whole, with its key", r)
	}
	q.MaxRowBytes--
	if r := f.read(t, q, "")[0]; r.err == nil || r.full != "" {
		t.Errorf("row = %+v, want it poison for its size", r)
	}
}

func deterministic(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00'), (2, 'b', '2024-05-01 10:00:01')`)
	first := f.read(t, orders(), "")
	for range 3 {
		again := f.read(t, orders(), "")
		for i := range first {
			if again[i] != first[i] {
				t.Errorf("row %d = %+v, then %+v", i, first[i], again[i])
			}
		}
	}
	if !strings.HasPrefix(first[0].data, `{"order_id":1,"status":"a","updated_at":"2024-05-01`) {
		t.Errorf("data = %s, want the members in the order of the columns", first[0].data)
	}
}
