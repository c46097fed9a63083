// Package jsontext appends JSON to a buffer without allocating. The
// standard library does not export this; rows and events are encoded by the million.
package jsontext

import (
	"math"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends a JSON string. It reports false for text that is not
// valid UTF-8; dst then holds an unfinished string, which the caller cuts off.
func AppendString[T ~string | ~[]byte](dst []byte, text T) ([]byte, bool) {
	dst, ok := AppendText(append(dst, '"'), text)
	if !ok {
		return dst, false
	}
	return append(dst, '"'), true
}

// AppendText is AppendString without the quotes.
func AppendText[T ~string | ~[]byte](dst []byte, text T) ([]byte, bool) {
	start := 0
	for i := 0; i < len(text); {
		for i+8 <= len(text) && isPlain(word(text[i:i+8])) {
			i += 8
		}
		if i == len(text) {
			break
		}
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
	return append(dst, text[start:]...), true
}

// word is eight bytes of text as one number.
func word[T ~string | ~[]byte](text T) uint64 {
	_ = text[7]
	return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
}

// Each constant repeats one byte eight times.
const (
	ones      = 0x0101010101010101
	highBits  = 0x80 * ones
	blanks    = ' ' * ones
	quotes    = '"' * ones
	slashes   = '\\' * ones
	deletions = 0x7f * ones
)

// isPlain reports whether each of eight bytes stands for itself in a JSON string:
// ASCII, no control character, no quote, no backslash. A byte of which one is
// subtracted gets its high bit when it was 0; borrowing may raise that of the
// next byte too, but only beside one that is not plain anyway. (Lamport, "Multiple
// Byte Processing with Full-Word Instructions", 1975.)
func isPlain(w uint64) bool {
	odd := w | (w - blanks) | ((w ^ quotes) - ones) | ((w ^ slashes) - ones) | ((w ^ deletions) - ones)
	return odd&highBits == 0
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

// AppendFloat appends the shortest text that means a finite number, without an exponent
// where people would not use one.
func AppendFloat(dst []byte, v float64) []byte {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}
