// Package jsontext appends JSON to a buffer without allocating. It is what the
// standard library keeps to itself: rows and events are encoded by the million.
package jsontext

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends a JSON string. It reports false for text that is not
// valid UTF-8; dst then holds an unfinished string, which the caller cuts off.
func AppendString[T ~string | ~[]byte](dst []byte, text T) ([]byte, bool) {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= 0x80 {
			size := runeSize(text[i:])
			if size == 0 {
				return dst, false
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		dst = append(dst, text[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"'), true
}

// runeSize returns the length of the first rune, or 0 where there is none.
func runeSize[T ~string | ~[]byte](text T) int {
	var first [utf8.UTFMax]byte
	n := copy(first[:], text)
	r, size := utf8.DecodeRune(first[:n])
	if r == utf8.RuneError && size <= 1 {
		return 0
	}
	return size
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
