package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// textWriter shows text on a terminal that must not obey it: names, keys and
// messages are written by others. Everything that commands print goes through one;
// [asIs] is for what has a form of its own.
type textWriter struct{ io.Writer }

// Write implements [io.Writer]. A character that comes in two pieces is not
// recognised, and is shown in bytes.
func (w textWriter) Write(text []byte) (int, error) {
	return writeShown(w.Writer, text, appendTextEscape)
}

func writeShown(w io.Writer, text []byte, escape func([]byte, rune, byte) []byte) (int, error) {
	if _, err := io.WriteString(w, shown(string(text), escape)); err != nil {
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
	return writeShown(t.Writer, text, appendJSONEscape)
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
func escaped(text string) string { return shown(text, appendTextEscape) }

// shown escapes what a terminal would obey or hide. escape appends the escape of a
// character, or of a byte that is no text, which comes as [utf8.RuneError].
func shown(text string, escape func(dst []byte, r rune, first byte) []byte) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var b []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 || obeyed(r) {
			b = escape(b, r, text[0])
		} else {
			b = append(b, text[:size]...)
		}
		text = text[size:]
	}
	return string(b)
}

func appendTextEscape(dst []byte, r rune, first byte) []byte {
	switch {
	case r == utf8.RuneError:
		return fmt.Appendf(dst, `\x%02x`, first)
	case r > 0xffff:
		return fmt.Appendf(dst, `\U%08x`, r)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// appendJSONEscape knows no bytes: what is no text is shown as JSON's readers read
// it, as U+FFFD.
func appendJSONEscape(dst []byte, r rune, _ byte) []byte {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// obeyed reports whether a terminal may do something at a character, and not show it.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
