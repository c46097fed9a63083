package systemd

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const statusKey = "STATUS="

// maxStatus limits a status, in bytes: the manager drops messages over 4096.
const maxStatus = 1024

// statusLine returns the status message with the text. A line break would end it, and
// the rest would be another message.
func statusLine(text string) string { return statusKey + oneLine(text) }

// oneLine returns the text without line breaks, without invisible characters, those
// that change the direction of writing, and bytes that are not UTF-8, cut where it is
// too long.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxStatus {
		return text
	}
	cut := maxStatus - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
