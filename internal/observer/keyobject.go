package observer

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/jsontext"
)

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
