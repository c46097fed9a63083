package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/jsontext"
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

// jsonWriter is where JSON goes. It keeps the bytes of others, but on a terminal it
// escapes there what JSON does not: DEL, the control characters of C1 and those that
// turn the direction of a text. Each Write holds whole values.
func jsonWriter(w io.Writer) io.Writer {
	if w = asIs(w); isTerminal(w) {
		return jsonTerminal{w}
	}
	return w
}

// jsonTerminal shows JSON on a terminal. It reads as the same value.
type jsonTerminal struct{ io.Writer }

// Write implements [io.Writer].
func (t jsonTerminal) Write(text []byte) (int, error) {
	if _, err := t.Writer.Write(jsontext.AppendHarmless(nil, text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// asIs is the writer beneath: for what has a form of its own, see [jsonWriter], and
// for what draws on a terminal itself.
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
	if utf8.ValidString(text) && !strings.ContainsFunc(text, jsontext.Obeyed) {
		return text
	}
	var b []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b = fmt.Appendf(b, `\x%02x`, text[0])
		case !jsontext.Obeyed(r):
			b = append(b, text[:size]...)
		case r > 0xffff:
			b = fmt.Appendf(b, `\U%08x`, r)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return string(b)
}
