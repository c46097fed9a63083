package observer_test

import (
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

func TestJoinKey(t *testing.T) {
	t.Parallel()
	for want, parts := range map[string][]string{
		"a/b":          {"a/b"},
		"50%":          {"50%"},
		"B1/s7":        {"B1", "s7"},
		"B%2F1/50%25":  {"B/1", "50%"},
		"%252F/":       {"%2F", ""},
		"//":           {"", "", ""},
		"a%2Fb/c%2Fd/": {"a/b", "c/d", ""},
	} {
		equal(t, "key", observer.JoinKey(parts), want)
		if got := observer.SplitKey(want, len(parts)); !slices.Equal(got, parts) {
			t.Errorf("%q splits into %q, want %q", want, got, parts)
		}
	}
}

func FuzzKeyRoundTrip(f *testing.F) {
	f.Add("a", "b/c", "%2F")
	f.Add("", "%", "/")
	f.Add("%25", "\x00", "\xff")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, parts := range [][]string{{a}, {a, b}, {a, b, c}} {
			if got := observer.SplitKey(observer.JoinKey(parts), len(parts)); !slices.Equal(got, parts) {
				t.Errorf("%q became %q", parts, got)
			}
		}
		// What JoinKey did not write may split oddly, but into no more parts.
		if n := len(observer.SplitKey(a, 2)); n < 1 || n > 2 {
			t.Errorf("%q splits into %d parts", a, n)
		}
	})
}
