package systemd

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const statusKey = "STATUS="

// longestStatus bounds a status, in bytes: the manager drops messages over 4096.
const longestStatus = 1024

// statusLine makes a status of a text. A line break would end it, and let what
// follows pass for a message of its own.
func statusLine(text string) string { return statusKey + oneLine(text) }

// oneLine is the text without line breaks, characters that cannot be seen or turn
// the direction of writing, and what is not UTF-8, cut where it is too long.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= longestStatus {
		return text
	}
	cut := longestStatus - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
