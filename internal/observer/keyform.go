package observer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/events"
)

// KeyRule says what the text of a column has beyond the value, and what the normal
// form of a key lacks: it belongs to the width of the column, and becomes another
// where that does. The zero value is nothing.
type KeyRule string

// The rules.
const (
	// KeyBlanks are blanks at the end, as of CHAR.
	KeyBlanks KeyRule = "blanks"
	// KeyZeroBytes are zero bytes at the end, in hexadecimal digits, as of BINARY.
	KeyZeroBytes KeyRule = "zero bytes"
	// KeyZeros are zeros at the end of a decimal fraction, as of DECIMAL, and in front
	// of a number.
	KeyZeros KeyRule = "zeros"
	// KeyFraction are zeros at the end of a fraction of a second.
	KeyFraction KeyRule = "fraction"
	// KeyClass is for a column without a type: the normal form has the class of the
	// value in addition. It cannot be told from the text.
	KeyClass KeyRule = "class"
)

// Normal returns the normal form of a part of a key, which is a part of its text. No
// text becomes empty. A part by [KeyClass] stays as it is.
func (r KeyRule) Normal(part []byte) []byte {
	switch r {
	case KeyBlanks:
		return part[:max(len(bytes.TrimRight(part, " ")), min(len(part), 1))]
	case KeyZeroBytes:
		for len(part) > 2 && len(part)%2 == 0 && bytes.HasSuffix(part, []byte("00")) {
			part = part[:len(part)-2]
		}
	case KeyZeros:
		return withoutZeros(withoutFraction(part))
	case KeyFraction:
		return withoutFraction(part)
	}
	return part
}

// withoutFraction takes the zeros from the end of a fraction, and the point if
// nothing is behind it. What has an exponent stays.
func withoutFraction(text []byte) []byte {
	whole, fraction, ok := bytes.Cut(text, []byte("."))
	if !ok || len(whole) == 0 || len(bytes.Trim(fraction, "0123456789")) > 0 {
		return text
	}
	return bytes.TrimSuffix(bytes.TrimRight(text, "0"), []byte("."))
}

// withoutZeros takes zeros from the front of a number, and the sign of zero.
func withoutZeros(text []byte) []byte {
	for len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' {
		text = text[1:]
	}
	if string(text) == "-0" {
		return text[1:]
	}
	return text
}

// KeyColumn is a column of the key.
type KeyColumn struct {
	Column
	// Rule is the one of its type, Width what decides on how much of that the text has,
	// such as "scale 2". Both are empty where the text is the value's own.
	Rule  KeyRule
	Width string
	// Encoding is how the data writes it.
	Encoding events.Encoding
}

// KeyForm is how the keys of a stream are written.
type KeyForm struct {
	// Normal says that they are in the normal form, which stays as it is when a column
	// becomes wider within its type. Streams that began before there was one keep the
	// text of the database, until a person lets their keys be renamed.
	Normal bool
	// Columns are those of the key; nil for not known.
	Columns []KeyColumn
}

type keyFormJSON struct {
	Normal  bool        `json:"normal,omitempty"`
	Columns [][5]string `json:"columns,omitempty"` // Older versions wrote four, and read as many.
}

// Encode writes the form as the cursor remembers it; empty where no columns are known:
// no key was read then, and a binary that knows one form alone may be the first to do so.
func (f KeyForm) Encode() string {
	if len(f.Columns) == 0 {
		return ""
	}
	form := keyFormJSON{Normal: f.Normal}
	for _, c := range f.Columns {
		form.Columns = append(form.Columns, [5]string{c.Name, c.Type, string(c.Rule), c.Width, string(c.Encoding)})
	}
	return encode(form)
}

// DecodeKeyForm reads what [KeyForm.Encode] wrote. The error is for a text that a
// later version wrote.
func DecodeKeyForm(text string) (f KeyForm, err error) {
	form, err := decode[keyFormJSON](text, "form of the keys")
	f.Normal = form.Normal
	for _, c := range form.Columns {
		f.Columns = append(f.Columns, KeyColumn{Column{c[0], c[1]}, KeyRule(c[2]), c[3], events.Encoding(c[4])})
	}
	return f, err
}

// Matters reports whether the normal form differs from the text of the database. An
// older version, which knows only that text, must not write such keys.
func (f KeyForm) Matters() bool {
	return f.Normal && slices.ContainsFunc(f.Columns, func(c KeyColumn) bool { return c.Rule != "" })
}

// isOf reports whether the columns are those of a key, as the configuration names
// them. Names fold.
func (f KeyForm) isOf(key []KeyColumn) bool {
	return slices.EqualFunc(f.Columns, key, func(a, b KeyColumn) bool { return strings.EqualFold(a.Name, b.Name) })
}

// renamed describes which columns of the key write the same values in another way
// than before.
func (f KeyForm) renamed(now []KeyColumn) (changes []string) {
	if f.Normal || !f.isOf(now) {
		return nil
	}
	for i, c := range f.Columns {
		if c.Type == now[i].Type && c.Width != now[i].Width {
			changes = append(changes, fmt.Sprintf("column %q of the key was %s with %s and has %s, by which the same rows have other keys",
				c.Name, c.Type, c.Width, now[i].Width))
		}
	}
	return changes
}

// Rename returns the form that keys have once they are in the normal form, and how
// those of the present one are renamed. now are the columns that were found. A part
// whose column has another type now stays as it is: the database has converted its
// text.
func (f KeyForm) Rename(now []KeyColumn) (after KeyForm, rename func(key string) string) {
	rules := make([]KeyRule, len(f.Columns))
	if f.isOf(now) {
		for i, c := range f.Columns {
			if c.Type == now[i].Type {
				rules[i] = c.Rule
			}
		}
	}
	return KeyForm{Normal: true, Columns: now}, func(key string) string {
		parts := SplitKey(key, len(rules))
		if len(parts) != len(rules) || len(rules) == 0 {
			return key
		}
		for i, r := range rules {
			parts[i] = string(r.Normal([]byte(parts[i])))
		}
		return JoinKey(parts)
	}
}
