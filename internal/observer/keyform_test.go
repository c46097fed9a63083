package observer_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

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
		{},
		{Columns: keyColumns("scale 0")},
		{Normal: true, Columns: append(keyColumns("scale 2"), observer.KeyColumn{Column: observer.Column{Name: `a "b"`, Type: "text"}, Encoding: events.EncodingTime})},
	} {
		got, err := observer.DecodeKeyForm(f.Encode())
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%+v became %q, and that %+v, %v", f, f.Encode(), got, err)
		}
	}
	older, err := observer.DecodeKeyForm(`{"columns":[["id","bigint","",""]]}`)
	if err != nil || older.Columns[0].Type != "bigint" || older.Columns[0].Encoding != "" {
		t.Errorf("what an older version has written is %+v, %v", older, err)
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

// widened is a stage whose table has two rows, and becomes one with wider keys. older
// makes its stream one that began before keys had a normal form.
func widened(t *testing.T, older bool) (s *stage, widen func()) {
	s = setup(t, observer.DetectChange, func(spec *observer.Spec) { spec.Query.Key = []string{"ID"} })
	s.src.SetColumns(columns("id", "decimal", "value", "text")...)
	s.src.SetKeyColumns(keyColumns("scale 1")...)
	s.src.Put("1.0", "a")
	s.src.Put("2.5", "b")
	s.poll()
	if older {
		s.db.RenameKeys(stream, func(key string) string { return strings.Replace(key+".0", "2.5.0", "2.5", 1) }, observer.KeyForm{})
		s.poll()
	}
	return s, func() {
		s.src.SetKeyColumns(keyColumns("scale 2")...)
		s.src.Delete("1.0")
		s.src.Delete("2.5")
		s.src.Put("1.00", "a")
		s.src.Put("2.50", "b")
	}
}

func TestKeysOfNewStreamsStayWhenAColumnBecomesWider(t *testing.T) {
	t.Parallel()
	s, widen := widened(t, false)
	widen()
	s.poll()
	s.src.Put("1.00", "c")
	s.poll()
	// The data is as wide as the column, and the row is the same.
	equalList(t, "events", s.story(), "1 new 1", "2.5 new 1", "1 changed 2", "2.5 changed 2", "1 changed 3")
}

func TestOlderStreamsStopWhenAColumnOfTheKeyBecomesWider(t *testing.T) {
	t.Parallel()
	s, widen := widened(t, true)
	s.src.Put("1.0", "a")
	s.poll()
	widen()
	for range 2 {
		_, err := s.tryPoll()
		if !errors.Is(err, observer.ErrColumnsChanged) ||
			!strings.Contains(err.Error(), `column "id" of the key was decimal with scale 1 and has scale 2`) {
			t.Fatalf("got %v", err)
		}
		s.db.Accept(stream) // That alone renames no key.
	}
	refused, err := observer.DecodeRefusal(s.db.Cursor(stream).Refusal)
	equal(t, "error", err, nil)
	found, err := observer.DecodeKeyForm(refused.Key)
	equal(t, "error", err, nil)
	before, err := observer.DecodeKeyForm(s.db.Cursor(stream).KeyForm)
	equal(t, "error", err, nil)
	after, rename := before.Rename(found.Columns)
	s.db.RenameKeys(stream, rename, after)
	s.poll()
	s.src.Put("1.00", "c")
	s.poll()
	// The data is as wide as the column, and the row is the same.
	equalList(t, "events", s.story(), "1 new 1", "2.5 new 1", "1 changed 2", "2.5 changed 2", "1 changed 3")
	equal(t, "what is left", s.db.Cursor(stream).Refusal+s.db.Cursor(stream).Accepted, "")
}

// Where both forms of the keys are the same, an older stream needs no person.
func TestOlderStreamsHaveTheNormalFormWhereItIsTheSame(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.put(0, 3)
	s.poll()
	s.db.RenameKeys(stream, func(key string) string { return key }, observer.KeyForm{})
	s.put(3, 3)
	s.poll()
	f, err := observer.DecodeKeyForm(s.db.Cursor(stream).KeyForm)
	equal(t, "error", err, nil)
	equal(t, "normal", f.Normal, true)
	equal(t, "fingerprint", strings.Contains(s.db.Cursor(stream).Fingerprint, "-"), false)
}

// An older binary knows one form of keys, and one fingerprint.
func TestFingerprintOfANormalFormIsOfItsOwn(t *testing.T) {
	t.Parallel()
	of := func(older bool) string {
		s, _ := widened(t, older)
		s.src.Put("3.0", "c")
		s.poll()
		return s.db.Cursor(stream).Fingerprint
	}
	normal, plain := of(false), of(true)
	equal(t, "fingerprint", normal, plain+"-normal-keys")
}

// Until the columns of the key are known, an older binary may poll as well: nothing
// tells it that the keys have another form.
func TestFormOfKeysThatNobodyHasReadIsOpen(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, func(spec *observer.Spec) { spec.Start.At = observertest.Time(1) })
	s.src.SetColumns(columns("id", "decimal", "value", "text")...)
	s.src.SetKeyColumns(keyColumns("scale 1")...)
	s.src.Put("1.0", "a")
	// The start is committed before anything is read.
	if _, err := s.observer().Poll(t.Context(), s.src, &dying{s.db.Acquire(), 1}); err == nil {
		t.Fatal("did not commit")
	}
	form, err := observer.DecodeKeyForm(s.db.Cursor(stream).KeyForm)
	equal(t, "error", err, nil)
	s.poll()
	s.db.RenameKeys(stream, func(key string) string { return key + ".0" }, form) // as an older binary would have written it
	s.src.Put("1.0", "b")
	s.poll()
	equalList(t, "events", s.story(), "1 new 1", "1.0 changed 2")
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

func TestRename(t *testing.T) {
	t.Parallel()
	char := observer.KeyColumn{Column: observer.Column{Name: "code", Type: "char"}, Rule: observer.KeyBlanks, Width: "length 4"}
	wider, retyped := char, char
	wider.Width = "length 8"
	retyped.Type, retyped.Rule, retyped.Width = "text", "", ""
	before := observer.KeyForm{Columns: append(keyColumns("scale 2"), char)}
	for name, test := range map[string]struct {
		now       []observer.KeyColumn
		key, want string
	}{
		"wider":            {append(keyColumns("scale 3"), wider), "1.50/a%2Fb ", "1.5/a%2Fb"},
		"normal already":   {append(keyColumns("scale 3"), wider), "1/a", "1/a"},
		"one of two":       {append(keyColumns("scale 3"), retyped), "1.50/a   ", "1.5/a   "},
		"another key":      {keyColumns("scale 3"), "1.50/a ", "1.50/a "},
		"fewer parts":      {append(keyColumns("scale 3"), wider), "1.50", "1.50"},
		"more than a part": {append(keyColumns("scale 3"), wider), "1.50/%25 /x ", "1.5/%25 %2Fx"},
	} {
		after, rename := before.Rename(test.now)
		equal(t, name, rename(test.key), test.want)
		equal(t, name+", again", rename(test.want), test.want)
		equal(t, "normal", after.Normal, true)
	}
}
