package jsontext

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Obeyed reports whether a terminal may do something at a character, and not show it:
// a control character but for the end of a line and the tab, or one that turns the
// direction of a text.
func Obeyed(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// AppendHarmless appends a text for a terminal, with the escapes of JSON for what a
// terminal would obey, so that JSON reads as the same value. What is no text is shown
// as JSON's readers read it, as U+FFFD.
func AppendHarmless[T ~string | ~[]byte](dst []byte, text T) []byte {
	for i := 0; i < len(text); {
		var first [utf8.UTFMax]byte
		n := copy(first[:], text[i:])
		r, size := utf8.DecodeRune(first[:n])
		switch high, low := utf16.EncodeRune(r); {
		case r == utf8.RuneError && size == 1:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		case !Obeyed(r):
			dst = append(dst, text[i:i+size]...)
		case r > 0xffff:
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		i += size
	}
	return dst
}
