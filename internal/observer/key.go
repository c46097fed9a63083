package observer

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/jsontext"
)

var keyEscaper = strings.NewReplacer("%", "%25", "/", "%2F")

// JoinKey makes one text of the parts of a natural key: joined with "/", in
// which a "/" or "%" of a part of a compound key is escaped as in a URL. Equal
// texts mean equal keys. A key of one part is that part, unchanged.
func JoinKey(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(fn.Each(parts, keyEscaper.Replace), "/")
}

var keyUnescaper = strings.NewReplacer("%2F", "/", "%25", "%")

// SplitKey undoes [JoinKey] for a key of n parts.
func SplitKey(key string, n int) []string {
	if n == 1 {
		return []string{key}
	}
	parts := strings.SplitN(key, "/", n)
	for i, part := range parts {
		parts[i] = keyUnescaper.Replace(part)
	}
	return parts
}

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

// Hashed is the column of the key as it is hashed by a key.
func (c KeyColumn) Hashed(key *HashKey) KeyColumn {
	return KeyColumn{Column: c.Redacted(RedactHash), Width: "key " + key.Fingerprint(), Encoding: events.EncodingHash}
}

// KeyForm is how the keys of a stream are written, which is in the normal form: the columns
// of the key. It is nil for not known.
type KeyForm []KeyColumn

// Encode writes the form as the cursor remembers it; empty where no columns are known.
func (f KeyForm) Encode() string {
	if len(f) == 0 {
		return ""
	}
	return encode(fn.Each(f, func(c KeyColumn) [5]string {
		return [5]string{c.Name, c.Type, string(c.Rule), c.Width, string(c.Encoding)}
	}))
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

// rehashed reports whether other columns of the key are hashed, or by another key: the
// same rows have other keys then.
func (f KeyForm) rehashed(now []KeyColumn) bool { return !slices.Equal(hashes(f), hashes(now)) }

// hashes are the hashed columns, each with its key.
func hashes(columns []KeyColumn) (found []string) {
	for _, c := range columns {
		if c.Encoding == events.EncodingHash {
			found = append(found, strings.ToLower(c.Name)+" "+c.Width)
		}
	}
	return found
}

// The marks of [KeyClass].
const (
	// TextClass and BlobClass begin a text, and bytes, that could be taken for a number.
	TextClass = "text:"
	BlobClass = "blob:"
)

// Object writes a key as a JSON object, in which the columns have the names and the types
// of the data of its row. names are those of the configuration, for a stream whose columns
// are not known: their values become strings.
func (f KeyForm) Object(names []string, key string) []byte {
	dst := []byte{'{'}
	for i, part := range SplitKey(key, len(names)) {
		c := KeyColumn{Column: Column{Name: names[i]}}
		if len(f) == len(names) {
			c = f[i]
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, _ = jsontext.AppendString(dst, c.Name)
		dst = append(dst, ':')
		dst = c.appendValue(dst, part)
	}
	return append(dst, '}')
}

// appendValue appends a part of a key.
func (c KeyColumn) appendValue(dst []byte, part string) []byte {
	part = c.widened(part)
	encoding := c.Encoding
	if encoding == events.EncodingAny {
		encoding, part = classOf(part, c.Rule == KeyClass)
	}
	switch encoding {
	case events.EncodingInteger, events.EncodingNumber:
		if number := numberOf(part); isNumber(number) {
			return append(dst, number...)
		}
		switch part {
		case "+Inf":
			part = "Infinity"
		case "-Inf":
			part = "-Infinity"
		}
	case events.EncodingBoolean:
		if is, err := strconv.ParseBool(part); err == nil {
			return strconv.AppendBool(dst, is)
		}
	case events.EncodingBytes:
		if raw, err := hex.DecodeString(strings.TrimPrefix(part, `\x`)); err == nil {
			part = base64.StdEncoding.EncodeToString(raw)
		}
	case events.EncodingTime, events.EncodingUTC:
		part = timeOf(part, encoding == events.EncodingUTC)
	case events.EncodingYear:
		part = fmt.Sprintf("%04s", part)
	case events.EncodingJSON:
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(part)); err == nil {
			return append(dst, b.Bytes()...)
		}
	}
	dst, _ = jsontext.AppendString(dst, part)
	return dst
}

// widened gives a text that is no number what the normal form has taken from it.
func (c KeyColumn) widened(part string) string {
	_, digits, _ := strings.Cut(c.Width, " ")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return part
	}
	switch c.Rule {
	case KeyBlanks:
		part += strings.Repeat(" ", max(0, n-utf8.RuneCountInString(part)))
	case KeyZeroBytes:
		part += strings.Repeat("0", max(0, 2*n-len(part)))
	case KeyFraction:
		if n > 0 {
			whole, fraction, _ := strings.Cut(part, ".")
			part = whole + "." + fraction + strings.Repeat("0", max(0, n-len(fraction)))
		}
	}
	return part
}

// classOf tells the type of a value by its text. One without marks may be another.
func classOf(part string, marked bool) (events.Encoding, string) {
	if text, ok := strings.CutPrefix(part, TextClass); ok && marked {
		return "", text
	}
	if digits, ok := strings.CutPrefix(part, BlobClass); ok && marked {
		return events.EncodingBytes, digits
	}
	if isNumber(part) || part == "+Inf" || part == "-Inf" {
		return events.EncodingNumber, withExponent(part)
	}
	return "", part
}

// withExponent writes a number as the data of its row did, if it has the text of a key of
// floating point, which has no exponent.
func withExponent(part string) string {
	n, err := strconv.ParseFloat(part, 64)
	if err != nil || strconv.FormatFloat(n, 'f', -1, 64) != part {
		return part
	}
	return string(jsontext.AppendFloat(nil, n))
}

// isNumber reports whether a text is a number of JSON.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text))
}

// numberOf writes a number as JSON does, which has no zeros in front but one before the
// point.
func numberOf(part string) string {
	digits, negative := strings.CutPrefix(part, "-")
	digits = string(withoutZeros([]byte(digits)))
	if strings.HasPrefix(digits, ".") {
		digits = "0" + digits
	}
	if negative {
		digits = "-" + digits
	}
	return digits
}

// timeOf writes a time as the data does. What is none stays as it is, such as infinity, a
// date without a year and a year BC.
func timeOf(part string, utc bool) string {
	if _, err := time.Parse(time.DateTime, part[:min(len(part), len(time.DateTime))]); err != nil || part[:4] == "0000" || strings.HasSuffix(part, "C") {
		return part
	}
	clock, zone := strings.CutSuffix(part[len(time.DateOnly)+1:], "+00")
	if zone || utc {
		clock += "Z"
	}
	return part[:len(time.DateOnly)] + "T" + clock
}
