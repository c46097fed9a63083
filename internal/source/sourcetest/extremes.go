package sourcetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
)

// Edge is a type of a database, with values at its edges.
type Edge struct {
	// Column declares a column of the type.
	Column string
	// Values are literals of it. NULL is tried with every type.
	Values []string
	// Text is an expression over the column v by which the database writes a value
	// exactly, and Says what is to become of it, by that text.
	Text string
	Says func(text string) Said
	// Unkeyed says that no key may be of the type.
	Unkeyed bool
	// TableAlone says that a query does not tell of the type.
	TableAlone bool
	// Times says that the type may order rows. Micros is the database's own expression
	// for the instant of v in microseconds since 1970, which may be off by less than
	// Within; empty means that [Said.At] is the instant.
	Times  bool
	Micros string
	Within time.Duration
}

// Said is a value as a source hands it over.
type Said struct {
	// Data is a [Number], a [Double], a [Document], a bool or a string.
	Data any
	// Key is the value as a part of a key.
	Key string
	// Cursor is the value as a timestamp; empty for none, which makes the row poison.
	Cursor string
	At     time.Time
}

// Number is a number of JSON, in any of its notations.
type Number string

// Double is a number of JSON that means this one and no other.
type Double float64

// Document is a value of JSON, whose white space does not matter.
type Document string

// The faults of a value that no event can hold, behind the name of its column.
const (
	noText   = "is not valid text (UTF-8 without NUL)"
	noKey    = "is NULL in the key"
	emptyKey = "is empty in the key"
	overKey  = "makes a key longer than 1024 bytes"
)

// extremes compares values with what their own database writes.
func extremes(t *testing.T, f Fixture) {
	for n, e := range f.Edges {
		t.Run(e.Column, func(t *testing.T) {
			w := f.written(t, fmt.Sprintf("edge_%d", n), e)
			w.data(t)
			w.keys(t)
			w.hashes(t)
			if e.Times {
				w.times(t)
			}
		})
	}
}

// written are the values of a type in a table, by their places from 1. The row 0 has
// NULL.
type written struct {
	Fixture
	Edge
	table  string
	said   []Said
	micros []string
}

func (f Fixture) written(t *testing.T, table string, e Edge) written {
	t.Helper()
	f.exec("CREATE TABLE " + table + " (id {integer} PRIMARY KEY, v " + e.Column + ")")
	rows := []string{"(0, NULL)"}
	for i, value := range e.Values {
		rows = append(rows, fmt.Sprintf("(%d, %s)", i+1, value))
	}
	f.Exec("INSERT INTO " + table + " VALUES " + strings.Join(rows, ", "))
	instant := e.Micros
	if instant == "" {
		instant = "id"
	}
	w := written{Fixture: f, Edge: e, table: table, said: []Said{{}}, micros: []string{""}}
	for _, row := range f.Query("SELECT " + e.Text + ", " + instant + " FROM " + table + " WHERE id > 0 ORDER BY id") {
		w.said = append(w.said, e.Says(row[0]))
		w.micros = append(w.micros, row[1])
	}
	if len(w.said) != len(e.Values)+1 {
		t.Fatalf("%d values of %d", len(w.said)-1, len(e.Values))
	}
	return w
}

// value names a value for a person.
func (w written) value(i int) string {
	if i == 0 {
		return "NULL"
	}
	return w.Values[i-1][:min(len(w.Values[i-1]), 60)]
}

// each calls check with all rows of a query, which has the column id in its key or its
// data.
func (w written) each(t *testing.T, q observer.Query, check func(i int, r row)) {
	t.Helper()
	seen := make(map[int]bool)
	for _, r := range w.read(t, q, "") {
		i, err := strconv.Atoi(r.key)
		if q.Key[0] == "v" {
			i, err = strconv.Atoi(strings.Trim(r.data, `{"id:}`))
		}
		if err != nil || i >= len(w.said) || seen[i] {
			t.Fatalf("row %+v: %v", r, err)
		}
		seen[i] = true
		check(i, r)
	}
	if len(seen) != len(w.said) {
		t.Errorf("%d rows of %d", len(seen), len(w.said))
	}
}

// faulty checks that a row is poison for that fault of the column v, and says nothing
// beyond; empty for none.
func (w written) faulty(t *testing.T, what string, i int, r row, fault string) {
	t.Helper()
	switch {
	case fault == "" && r.err != nil:
		t.Errorf("%s of %s: %v", what, w.value(i), r.err)
	case fault != "" && (r.err == nil || strings.ToLower(r.err.Error()) != "column v "+strings.ToLower(fault)):
		t.Errorf("%s of %s: %v, want that column v %s", what, w.value(i), r.err, fault)
	}
}

func (w written) data(t *testing.T) {
	t.Helper()
	table := observer.Query{Table: w.table, Key: []string{"id"}, Columns: []string{"v"}}
	query := table
	query.Table, query.SQL = "", "SELECT id, v FROM "+w.table
	for _, q := range []observer.Query{table, query} {
		if w.TableAlone && q.SQL != "" {
			continue
		}
		schema := w.schema(t, q)
		w.each(t, q, func(i int, r row) {
			if r.err == nil {
				schema.check(t, "the event of "+w.value(i), events.ChangeNew, r.sent)
			}
			want, fault := w.said[i].Data, ""
			if text, ok := want.(string); ok && !holdable(text) {
				want, fault = nil, noText
			}
			w.faulty(t, "data", i, r, fault)
			got, cut := strings.CutPrefix(r.data, `{"v":`)
			if !cut || !same([]byte(strings.TrimSuffix(got, "}")), want) {
				t.Errorf("%s%s arrives as %s, want %v", q.SQL, w.value(i), short(r.data), short(fmt.Sprint(want)))
			}
		})
	}
}

func (w written) keys(t *testing.T) {
	t.Helper()
	if w.Unkeyed {
		return
	}
	q := observer.Query{Table: w.table, Key: []string{"v"}, Columns: []string{"id"}}
	w.each(t, q, w.keyed(t, q, w.drained(t, q).KeyColumns()))
}

// keyed checks a row whose key is the value, and what its key says once the row has gone.
func (w written) keyed(t *testing.T, q observer.Query, form observer.KeyForm) func(i int, r row) {
	schema := w.schema(t, q)
	return func(i int, r row) {
		want, fault := w.said[i].Key, ""
		switch {
		case i == 0 || want == "" && w.EmptyIsNull && w.said[i].Data == nil:
			fault = noKey
		case want == "":
			fault = emptyKey
		case !holdable(want):
			fault = noText
		case len(want) > 1024:
			fault = overKey
		}
		if fault == "" && r.err != nil && strings.HasSuffix(r.err.Error(), overKey) {
			return // It is longer with the class of the value.
		}
		w.faulty(t, "key", i, r, fault)
		if fault != "" {
			want = ""
		}
		rule := form[0].Rule
		if want = string(rule.Normal([]byte(want))); r.key != want && rule != observer.KeyClass {
			t.Errorf("the key of %s is %q, want %q", w.value(i), short(r.key), short(want))
		}
		if fault != "" {
			return
		}
		schema.check(t, "the event of "+w.value(i), events.ChangeChanged, r.sent)
		schema.check(t, "the last event of "+w.value(i), events.ChangeGone, string(form.Object([]string{"v"}, r.key)))
		texts := map[string]string{"in the data": r.full, "once it has gone": string(form.Object([]string{"v"}, r.key))}
		if w.Classless != nil && w.Classless(w.Column, w.said[i]) {
			delete(texts, "once it has gone")
		}
		_, double := w.said[i].Data.(Double)
		var row, key struct{ V json.RawMessage }
		if err := json.Unmarshal([]byte(r.full), &row); err != nil {
			t.Error(err)
		}
		for what, data := range texts {
			if err := json.Unmarshal([]byte(data), &key); err != nil || !same(key.V, w.said[i].Data) || double && string(key.V) != string(row.V) {
				t.Errorf("the key of %s, %s is %s, want %v", w.value(i), what, short(data), short(fmt.Sprint(w.said[i].Data)))
			}
		}
	}
}

func (w written) times(t *testing.T) {
	t.Helper()
	q := observer.Query{Table: w.table, Key: []string{"id"}, Columns: []string{"id"}, Timestamp: "v"}
	var cursors []string
	w.each(t, q, func(i int, r row) {
		want, fault := w.said[i], ""
		if i > 0 && want.Cursor == "" {
			fault = w.Timeless
		}
		w.faulty(t, "timestamp", i, r, fault)
		if r.cursor != want.Cursor {
			t.Errorf("the cursor of %s is %q, want %q", w.value(i), r.cursor, want.Cursor)
		}
		micros := want.At.UnixMicro()
		if w.Micros != "" && want.Cursor != "" {
			n, err := strconv.ParseInt(w.micros[i], 10, 64)
			if err != nil {
				t.Fatalf("the instant of %s: %v", w.value(i), err)
			}
			micros = n
		}
		if off := r.micros - micros; max(off, -off) > w.Within.Microseconds() {
			t.Errorf("%s is %d microseconds behind 1970, want %d", w.value(i), r.micros, micros)
		}
		if r.cursor != "" {
			cursors = append(cursors, r.cursor)
		}
	})
	// Each of them is a bound that leaves out what comes before it and nothing else.
	for i, from := range cursors {
		for i > 0 && w.Source.Compare(cursors[i-1], from) == 0 {
			i--
		}
		n := 0
		for _, r := range w.read(t, q, from) {
			if r.cursor != "" {
				n++
			}
		}
		if n != len(cursors)-i {
			t.Errorf("from %s: %d rows, want %d", from, n, len(cursors)-i)
		}
	}
}

// holdable reports whether an event may hold the text.
func holdable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// same reports whether a value of JSON is the one that is wanted; nil is null.
func same(got []byte, want any) bool {
	if !json.Valid(got) || !utf8.Valid(got) {
		return false
	}
	switch want := want.(type) {
	case nil:
		return string(got) == "null"
	case bool:
		return string(got) == strconv.FormatBool(want)
	case string:
		var text string
		return got[0] == '"' && json.Unmarshal(got, &text) == nil && text == want
	case Number:
		return isNumber(got) && equal(string(got), string(want))
	case Double:
		n, err := strconv.ParseFloat(string(got), 64)
		return isNumber(got) && err == nil && n == float64(want)
	case Document:
		var compact bytes.Buffer
		return json.Compact(&compact, []byte(want)) == nil && bytes.Equal(compact.Bytes(), got)
	}
	return false
}

func isNumber(got []byte) bool { return got[0] == '-' || got[0] >= '0' && got[0] <= '9' }

// equal compares numbers to the last digit; that below zero which is zero is another
// one than zero.
func equal(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && strings.HasPrefix(a, "-") == strings.HasPrefix(b, "-") && x.Cmp(y) == 0
}

// short is enough of a text to know it by.
func short(text string) string {
	if len(text) > 120 {
		return fmt.Sprintf("%s… (%d bytes)", text[:120], len(text))
	}
	return text
}
