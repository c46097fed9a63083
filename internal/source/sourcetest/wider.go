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
	// Same says that both types write the same text in the data.
	Same bool
	// Untold says that the source cannot tell the columns of two queries apart.
	Untold bool
}

// widerKeys shows that the normal form of a key does not depend on the width of its
// column, which the source tells, and that reads go on from it.
func widerKeys(t *testing.T, f Fixture) {
	for n, w := range f.Wider {
		var forms, ofQueries [2][]observer.KeyColumn
		for i, column := range []string{w.Narrow, w.Wide} {
			q := observer.Query{Table: fmt.Sprintf("keys_%d_%d", n, i), Key: []string{"k"}}
			f.exec("CREATE TABLE " + q.Table + " (k " + column + " NOT NULL PRIMARY KEY, updated_at {timestamp} NOT NULL)")
			for _, value := range w.Values {
				f.exec("INSERT INTO " + q.Table + " VALUES (" + value + ", '2024-05-01 10:00:00')")
			}
			forms[i] = f.drained(t, q).KeyColumns()
			if got := keyList(f.suffixes(t, q)); !slices.Equal(got, w.Keys) {
				t.Fatalf("%s: normal keys = %q, want %q", column, got, w.Keys)
			}
			query := observer.Query{SQL: "SELECT k, updated_at FROM " + q.Table, Key: q.Key}
			if got := keyList(f.readIn(t, query, observer.Range{})); !sameMembers(got, w.Keys) {
				t.Errorf("%s of a query: normal keys = %q, want %q", column, got, w.Keys)
			}
			ofQueries[i] = f.drained(t, query).KeyColumns()
			q.Timestamp = "updated_at"
			if got := f.ties(t, q); len(got) != len(w.Keys) {
				t.Errorf("%s: %d rows of one timestamp, want %d", column, len(got), len(w.Keys))
			}
		}
		if same := forms[0][0].Width == forms[1][0].Width; same != w.Same {
			t.Errorf("%s and %s: %+v and %+v", w.Narrow, w.Wide, forms[0], forms[1])
		}
		if same := ofQueries[0][0].Width == ofQueries[1][0].Width; same != (w.Same || w.Untold) {
			t.Errorf("%s and %s of a query: %+v and %+v", w.Narrow, w.Wide, ofQueries[0], ofQueries[1])
		}
	}
}

// sameMembers leaves the order aside.
func sameMembers(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
