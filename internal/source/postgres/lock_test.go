package postgres

import (
	"strings"
	"testing"
)

// What can be locked by itself is, so that no partition is locked that the range
// does not need; what cannot is locked from above.
func TestTablesOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tables string // name, kind, readable; …
		want   string
	}{
		"nothing":                     {"", ""},
		"tables":                      {"a r t;b p t;c r t", "ONLY a, ONLY b, ONLY c"},
		"a view of what we may read":  {"v v t;a r t", "ONLY a"},
		"a view of what we may not":   {"v v t;a r f", "v"},
		"a view below another":        {"v v t;w v f;a r f", "v"},
		"a partition that is barred":  {"a p t;b r t;c r f", "a, b"},
		"a table of which we may not": {"a r t;b r f", "a"},
		"only such":                   {"b r f", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rows [][][]byte
			for line := range strings.SplitSeq(tc.tables, ";") {
				var row [][]byte
				for field := range strings.FieldsSeq(line) {
					row = append(row, []byte(field))
				}
				if row != nil {
					rows = append(rows, row)
				}
			}
			if got := strings.Join(tablesOf(rows), ", "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
