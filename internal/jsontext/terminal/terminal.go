// Package terminal writes what others have written, such as names, keys and messages, so that
// a terminal shows it and does not obey it.
package terminal

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"

	"github.com/observerd/observerd/internal/jsontext"
)

// Text writes text, escaped, to the writer in it. [AsIs] is for what has a form of its own.
type Text struct {
	io.Writer
	// Err is the first error, for those who print without looking at it.
	Err error
}

// Write implements [io.Writer]. A character that comes in two pieces is not
// recognised, and is shown in bytes.
func (t *Text) Write(text []byte) (int, error) {
	if _, err := io.WriteString(t.Writer, Escaped(string(text))); err != nil {
		t.Err = cmp.Or(t.Err, err)
		return 0, err
	}
	return len(text), nil
}

// JSON is where JSON goes. It keeps the bytes of others, but on a terminal it
// escapes there what JSON does not: DEL, the control characters of C1 and those that
// turn the direction of a text. Each Write holds whole values.
func JSON(w io.Writer) io.Writer {
	if w = AsIs(w); Is(w) {
		return jsonWriter{w}
	}
	return w
}

// jsonWriter shows JSON on a terminal. It reads as the same value.
type jsonWriter struct{ io.Writer }

func (j jsonWriter) Write(text []byte) (int, error) {
	if _, err := j.Writer.Write(jsontext.AppendHarmless(nil, text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// AsIs is the writer beneath a [Text]: for what has a form of its own, see [JSON], and
// for what draws on a terminal itself.
func AsIs(w io.Writer) io.Writer {
	if t, ok := w.(*Text); ok {
		return t.Writer
	}
	return w
}

// Is reports whether a person looks at the stream, or types into it.
func Is(stream any) bool {
	if w, is := stream.(io.Writer); is {
		stream = AsIs(w)
	}
	f, ok := stream.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// Height is in lines; 0 where it is unknown.
func Height(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Row)
}

// Escaped shows what a terminal would obey, or hide, as \u001b, \U000e0001 or \x9b:
// control characters but for the end of a line and the tab, those that turn the
// direction of a text, and bytes that are no text.
func Escaped(text string) string {
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
