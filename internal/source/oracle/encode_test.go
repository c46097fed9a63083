package oracle

import (
	"database/sql"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

func encoderOf(t testing.TB, q observer.Query, columns ...source.Column) func(values []sql.RawBytes) *observer.Row {
	t.Helper()
	p, err := newPlan(relation{from: `"APP"."T"`, name: "APP.T", columns: columns}, q)
	if err != nil {
		t.Fatal(err)
	}
	b, err := source.NewBuilder(q, p.selection)
	if err != nil {
		t.Fatal(err)
	}
	c := &cells{plan: p, location: time.UTC}
	return func(values []sql.RawBytes) *observer.Row {
		c.values = values
		return b.Row(c)
	}
}

// What no emulator has, or no two drivers spell alike.
func TestCells(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		typ    string
		values []sql.RawBytes
		want   string
	}{
		{"NUMBER", []sql.RawBytes{[]byte(".5")}, "0.5"}, {"NUMBER", []sql.RawBytes{[]byte("-.5")}, "-0.5"}, {"NUMBER", []sql.RawBytes{[]byte("~")}, `"~"`},
		// What the driver makes of bytes that are no number of Oracle's.
		{"NUMBER", []sql.RawBytes{{}}, `""`}, {"NUMBER", []sql.RawBytes{[]byte("I4")}, `"I4"`}, {"NUMBER", []sql.RawBytes{[]byte("10.")}, `"10."`},
		{"NUMBER", []sql.RawBytes{[]byte("007")}, `"007"`}, {"NUMBER", []sql.RawBytes{[]byte("0")}, "0"}, {"NUMBER", []sql.RawBytes{[]byte("-0.5")}, "-0.5"},
		{"BINARY_DOUBLE", []sql.RawBytes{[]byte("-1.5e+21")}, "-1.5e+21"}, {"BINARY_DOUBLE", []sql.RawBytes{[]byte("1e")}, `"1e"`},
		{"BOOLEAN", []sql.RawBytes{[]byte("?")}, `"?"`},
		{"BINARY_DOUBLE", []sql.RawBytes{[]byte("NaN")}, `"NaN"`}, {"BINARY_DOUBLE", []sql.RawBytes{[]byte("+Inf")}, `"Infinity"`},
		{"BOOLEAN", []sql.RawBytes{[]byte("TRUE")}, "true"},
		{"INTERVAL DAY TO SECOND", []sql.RawBytes{[]byte("+01 00:00:00.000000")}, `"+01 00:00:00.000000"`},
		{"UROWID", []sql.RawBytes{[]byte("*BAMABCcCwQL+")}, `"*BAMABCcCwQL+"`},
		{"JSON", []sql.RawBytes{[]byte("20"), []byte(`{"a" : [1, 2.50]}`)}, `{"a":[1,2.50]}`},
		{"JSON", []sql.RawBytes{nil, nil}, "null"},
		{"DATE", []sql.RawBytes{[]byte("-0044-03-15 00:00:00")}, `"-0044-03-15T00:00:00"`},
		{"CLOB", []sql.RawBytes{[]byte("0"), nil}, `""`},
	} {
		encode := encoderOf(t, observer.Query{Table: "t", Key: []string{"ID"}, Columns: []string{"V"}}, source.Column{Name: "V", Type: test.typ}, source.Column{Name: "ID", Type: "NUMBER"})
		row := encode(append(test.values, []byte("1")))
		if want := `{"V":` + test.want + `,"ID":1}`; row.Err != nil || string(row.Data) != want {
			t.Errorf("%s %q: %s, %v, want %s", test.typ, test.values, row.Data, row.Err, want)
		}
	}
}
