package source

import "bytes"

// appendCompact appends a valid JSON text without the white space between its
// tokens, and stops where dst is longer than most.
func appendCompact(dst, text []byte, most int) []byte {
	inString := false
	for i := 0; i < len(text) && len(dst) <= most; i++ {
		c := text[i]
		switch {
		case inString && c == '\\' && i+1 < len(text):
			dst = append(dst, c, text[i+1])
			i++
			continue
		case c == '"':
			inString = !inString
		case !inString && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// isNumber reports whether a text is a number as JSON has them, but for the zero
// before the point.
func isNumber(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	whole := digits(text)
	if whole > 1 && text[0] == '0' {
		return false
	}
	text = text[whole:]
	if len(text) > 0 && text[0] == '.' {
		fraction := digits(text[1:])
		if fraction == 0 {
			return false
		}
		text = text[1+fraction:]
	} else if whole == 0 {
		return false
	}
	if len(text) > 1 && text[0] == 'e' {
		text = text[1:]
		if text[0] == '+' || text[0] == '-' {
			text = text[1:]
		}
		return len(text) > 0 && digits(text) == len(text)
	}
	return len(text) == 0
}

// digits counts the digits at the beginning.
func digits(text []byte) int {
	for i, c := range text {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(text)
}
