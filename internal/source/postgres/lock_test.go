package postgres

import (
	"strings"
	"testing"
)

// What can be locked by itself is, so that no partition is locked that the range
// does not need; what cannot is locked from above.
func TestLockable(t *testing.T) {
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
		"what others bring":           {"a r t;f f t;m m f", "ONLY a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tables []table
			for text := range strings.SplitSeq(tc.tables, ";") {
				if f := strings.Fields(text); len(f) > 0 {
					tables = append(tables, table{name: f[0], kind: f[1][0], readable: f[2] == "t"})
				}
			}
			if got := strings.Join(lockable(tables), ", "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
