package source

import "unicode/utf8"

// appendCompact appends a valid JSON text without the white space between its
// tokens, and stops where dst is longer than most. It reports false for invalid
// UTF-8.
func appendCompact(dst, text []byte, most int) ([]byte, bool) {
	if !utf8.Valid(text) {
		return dst, false
	}
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
	return dst, true
}
