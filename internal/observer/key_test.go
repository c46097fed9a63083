package observer_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
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

func TestKeyRule(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule         observer.KeyRule
		part, normal string
	}{
		{"", "1.00 ", "1.00 "},
		{observer.KeyClass, "1.00", "1.00"},
		{observer.KeyBlanks, "a b  ", "a b"},
		{observer.KeyBlanks, "   ", " "},
		{observer.KeyBlanks, "", ""},
		{observer.KeyZeroBytes, "61000000", "61"},
		{observer.KeyZeroBytes, "6010", "6010"},
		{observer.KeyZeroBytes, "000000", "00"},
		{observer.KeyZeros, "1.00", "1"},
		{observer.KeyZeros, "-10.50", "-10.5"},
		{observer.KeyZeros, "100", "100"},
		{observer.KeyZeros, "-0.00", "0"},
		{observer.KeyZeros, "0.00", "0"},
		{observer.KeyZeros, "00042", "42"},
		{observer.KeyZeros, "00042.70", "42.7"},
		{observer.KeyZeros, "NaN", "NaN"},
		{observer.KeyZeros, "1.50e10", "1.50e10"},
		{observer.KeyZeros, ".50", ".50"},
		{observer.KeyFraction, "2026-03-29 01:30:00.500", "2026-03-29 01:30:00.5"},
		{observer.KeyFraction, "2026-03-29 01:30:00.000", "2026-03-29 01:30:00"},
		{observer.KeyFraction, "00:30:00", "00:30:00"},
	} {
		got := string(test.rule.Normal([]byte(test.part)))
		equal(t, string(test.rule)+" of "+test.part, got, test.normal)
		equal(t, string(test.rule)+" of "+got, string(test.rule.Normal([]byte(got))), got)
	}
}

func TestKeyFormIsRemembered(t *testing.T) {
	t.Parallel()
	for _, f := range []observer.KeyForm{
		nil,
		keyColumns("scale 0"),
		append(keyColumns("scale 2"), observer.KeyColumn{Column: observer.Column{Name: `a "b"`, Type: "text"}, Encoding: events.EncodingTime}),
	} {
		got, err := observer.DecodeKeyForm(f.Encode())
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%+v became %q, and that %+v, %v", f, f.Encode(), got, err)
		}
	}
	equal(t, "text of none", observer.KeyForm{}.Encode(), "")
	if _, err := observer.DecodeKeyForm("{"); err == nil {
		t.Error("a text that is none was read")
	}
}

// keyColumns is the key of one column that is a decimal number.
func keyColumns(width string) []observer.KeyColumn {
	return []observer.KeyColumn{{Column: observer.Column{Name: "id", Type: "decimal"}, Rule: observer.KeyZeros, Width: width}}
}

func TestKeysStayWhenAColumnBecomesWider(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, func(spec *observer.Spec) { spec.Query.Key = []string{"ID"} })
	s.src.SetColumns(columns("id", "decimal", "value", "text")...)
	s.src.SetKeyColumns(keyColumns("scale 1")...)
	s.src.Put("1.0", "a")
	s.src.Put("2.5", "b")
	s.poll()
	s.src.SetKeyColumns(keyColumns("scale 2")...)
	s.src.Delete("1.0")
	s.src.Delete("2.5")
	s.src.Put("1.00", "a")
	s.src.Put("2.50", "b")
	s.poll()
	s.src.Put("1.00", "c")
	s.poll()
	// The data is as wide as the column, and the row is the same.
	equalList(t, "events", s.story(), "1 new 1", "2.5 new 1", "1 changed 2", "2.5 changed 2", "1 changed 3")
}

// A column of the key need not be one of the data.
func TestColumnOfTheKeyIsRetyped(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.src.SetColumns(columns("value", "text")...)
	s.put(0, 3)
	s.poll()
	s.src.SetKeyColumns(keyColumns("scale 0")...)
	_, err := s.tryPoll()
	if !errors.Is(err, observer.ErrColumnsChanged) || !strings.Contains(err.Error(), `column "id" of the key was text and is decimal`) {
		t.Fatalf("got %v", err)
	}
	s.db.Accept(stream)
	s.poll()
	equal(t, "events", len(s.story()), 3)
}

// SQLite tells no type of a column that has none, and writes its keys in another way.
func TestColumnOfTheKeyLosesItsType(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.put(0, 3)
	s.poll()
	s.src.SetColumns(columns("id", "", "value", "text")...)
	s.src.SetKeyColumns(observer.KeyColumn{Column: observer.Column{Name: "id"}, Rule: observer.KeyClass})
	_, err := s.tryPoll()
	if !errors.Is(err, observer.ErrColumnsChanged) || !strings.Contains(err.Error(), `column "id" of the key was text and is without a type`) {
		t.Fatalf("got %v", err)
	}
}
