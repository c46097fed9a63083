package events

import (
	"strings"

	"github.com/observerd/observerd/internal/jsontext"
)

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(dst []byte, text string) []byte {
	size := len(dst)
	dst, ok := jsontext.AppendString(dst, text)
	if !ok {
		dst, _ = jsontext.AppendString(dst[:size], strings.ToValidUTF8(text, "\ufffd"))
	}
	return dst
}
