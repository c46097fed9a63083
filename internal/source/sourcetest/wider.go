package sourcetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

// Wider is a type and one that is wider: both hold the same values.
type Wider struct {
	// Narrow and Wide are the types.
	Narrow, Wide string
	// Values are literals, in the order of the type. Keys is what they are in the normal
	// form of a key.
	Values, Keys []string
	// Same says that both types write the same text.
	Same bool
	// Untold says that the source cannot tell the columns of two queries apart.
	Untold bool
}

// widerKeys shows that the normal form of a key does not depend on the width of its
// column, that reads go on from it, and that the keys of the other form are renamed to
// it by what the source tells of them alone.
func widerKeys(t *testing.T, f Fixture) {
	for n, w := range f.Wider {
		var plain [2][]string
		var forms, ofQueries [2]observer.KeyForm
		for i, column := range []string{w.Narrow, w.Wide} {
			q := observer.Query{Table: fmt.Sprintf("keys_%d_%d", n, i), Key: []string{"k"}}
			f.exec("CREATE TABLE " + q.Table + " (k " + column + " NOT NULL PRIMARY KEY, updated_at {timestamp} NOT NULL)")
			for _, value := range w.Values {
				f.exec("INSERT INTO " + q.Table + " VALUES (" + value + ", '2024-05-01 10:00:00')")
			}
			plain[i] = keyList(f.readIn(t, q, observer.Range{ByKey: true}))
			forms[i] = f.keyForm(t, q)
			q.NormalKeys = true
			if got := keyList(f.suffixes(t, q)); !slices.Equal(got, w.Keys) {
				t.Fatalf("%s: normal keys = %q, want %q", column, got, w.Keys)
			}
			query := observer.Query{SQL: "SELECT k, updated_at FROM " + q.Table, Key: q.Key, NormalKeys: true}
			if got := keyList(f.readIn(t, query, observer.Range{})); !sameMembers(got, w.Keys) {
				t.Errorf("%s of a query: normal keys = %q, want %q", column, got, w.Keys)
			}
			ofQueries[i] = f.keyForm(t, query)
			q.Timestamp = "updated_at"
			if got := f.ties(t, q); len(got) != len(w.Keys) {
				t.Errorf("%s: %d rows of one timestamp, want %d", column, len(got), len(w.Keys))
			}
		}
		if same := slices.Equal(plain[0], plain[1]); same != w.Same || same != (forms[0].Columns[0].Width == forms[1].Columns[0].Width) {
			t.Errorf("%s and %s: keys %q and %q, of %+v and %+v", w.Narrow, w.Wide, plain[0], plain[1], forms[0], forms[1])
		}
		if same := ofQueries[0].Columns[0].Width == ofQueries[1].Columns[0].Width; same != (w.Same || w.Untold) {
			t.Errorf("%s and %s of a query: %+v and %+v", w.Narrow, w.Wide, ofQueries[0], ofQueries[1])
		}
		for i := range plain {
			_, rename := forms[i].Rename(forms[1-i].Columns)
			for n, key := range plain[i] {
				if got := rename(key); got != w.Keys[n] {
					t.Errorf("%s to %s: %q is renamed to %q, want %q", w.Narrow, w.Wide, key, got, w.Keys[n])
				}
			}
		}
	}
}

func keyList(rows []row) []string {
	list := make([]string, len(rows))
	for i, r := range rows {
		list[i] = r.key
	}
	return list
}

// sameMembers leaves the order aside.
func sameMembers(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// keyForm is what a read tells of the keys of a query.
func (f Fixture) keyForm(t *testing.T, q observer.Query) observer.KeyForm {
	t.Helper()
	rows, err := f.Source.Read(t.Context(), q, observer.Range{})
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	form := observer.KeyForm{Columns: rows.KeyColumns()}
	drain(t, rows)
	return form
}
