package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textWriter shows text on a terminal that must not obey it: names, keys and
// messages are written by others. Everything that commands print goes through one;
// [asIs] is for what has a form of its own.
type textWriter struct{ io.Writer }

// Write implements [io.Writer]. A character that comes in two pieces is not
// recognised, and is shown in bytes.
func (w textWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, escaped(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// asIs is the writer beneath: for JSON, which escapes what a terminal would obey and
// else has to keep the bytes of others, and for what draws on a terminal itself.
func asIs(w io.Writer) io.Writer {
	if t, ok := w.(textWriter); ok {
		return t.Writer
	}
	return w
}

// escaped shows what a terminal would obey, or hide, as \u001b, \U000e0001 or \x9b:
// control characters but for the end of a line and the tab, those that turn the
// direction of a text, and bytes that are no text.
func escaped(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case !obeyed(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.String()
}

// obeyed tells whether a terminal may do something at a character, and not show it.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
