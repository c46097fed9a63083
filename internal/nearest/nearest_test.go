package nearest_test

import (
	"testing"

	"github.com/observerd/observerd/internal/nearest"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	subjects := []string{"fileset", "document", "page", "audit"}
	for name, want := range map[string]string{
		"pgae":       "use page", // two letters are swapped
		"apge":       "use page",
		"pages":      "use page",
		"pgea":       "use one of fileset, document, page, audit",
		"File_Set":   "use fileset",
		"flieste":    "use fileset", // twice
		"doucmnet":   "use document",
		"invoice":    "use one of fileset, document, page, audit",
		"":           "use one of fileset, document, page, audit",
		"p\xffage":   "use page",
		"büro-audit": "use one of fileset, document, page, audit",
	} {
		if got := nearest.Suggest(name, subjects); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if got := nearest.Suggest("page", nil); got != "there is none" {
		t.Error(got)
	}
}

func TestNameIsTheNearest(t *testing.T) {
	t.Parallel()
	if got := nearest.Name("reading", []string{"heading", "raeding", "reading"}); got != "reading" {
		t.Error(got)
	}
	if got := nearest.Name("raeding", []string{"heading", "reading"}); got != "reading" {
		t.Error(got)
	}
}

// FuzzDistance compares with the definition.
func FuzzDistance(f *testing.F) {
	for _, pair := range [][2]string{{"pgae", "page"}, {"", "a"}, {"ca", "abc"}, {"büro", "brüo"}, {"\xff", "\xfe"}, {"abcd", "badc"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := []rune(a), []rune(b)
		if len(x) > 8 || len(y) > 8 {
			t.Skip("the definition takes exponential time")
		}
		if got, want := nearest.Distance(a, b), distance(x, y); got != want {
			t.Errorf("%q and %q: %d, want %d", a, b, got, want)
		}
	})
}

// distance looks at the last letters.
func distance(x, y []rune) int {
	i, j := len(x), len(y)
	if i == 0 || j == 0 {
		return i + j
	}
	if x[i-1] == y[j-1] {
		return distance(x[:i-1], y[:j-1])
	}
	least := 1 + min(distance(x[:i-1], y), distance(x, y[:j-1]), distance(x[:i-1], y[:j-1]))
	if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
		least = min(least, 1+distance(x[:i-2], y[:j-2]))
	}
	return least
}
