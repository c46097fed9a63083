package observer

import (
	"bytes"
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
	// Rule is the one of its type, Width what decides on how much of that the text in the
	// data has, such as "scale 2". Both are empty where the text is the value's own.
	Rule  KeyRule
	Width string
	// Encoding is how the data writes it.
	Encoding events.Encoding
}

// KeyForm is how the keys of a stream are written, which is in the normal form: the columns
// of the key. It is nil for not known.
type KeyForm []KeyColumn

// Encode writes the form as the cursor remembers it; empty where no columns are known.
func (f KeyForm) Encode() string {
	if len(f) == 0 {
		return ""
	}
	columns := make([][5]string, len(f))
	for i, c := range f {
		columns[i] = [5]string{c.Name, c.Type, string(c.Rule), c.Width, string(c.Encoding)}
	}
	return encode(columns)
}

// DecodeKeyForm reads what [KeyForm.Encode] wrote. The error is for a text that a
// later version wrote.
func DecodeKeyForm(text string) (f KeyForm, err error) {
	columns, err := decode[[][5]string](text, "form of the keys")
	for _, c := range columns {
		f = append(f, KeyColumn{Column{c[0], c[1]}, KeyRule(c[2]), c[3], events.Encoding(c[4])})
	}
	return f, err
}

// isOf reports whether the columns are those of a key, as the configuration names
// them. Names fold.
func (f KeyForm) isOf(key []KeyColumn) bool {
	return slices.EqualFunc(f, key, func(a, b KeyColumn) bool { return strings.EqualFold(a.Name, b.Name) })
}
