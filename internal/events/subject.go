package events

import (
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// escapes are the texts that [escapeSubject] writes for the characters which no attribute of
// a CloudEvent may hold, with any number of 25 behind their first %.
var escapes = regexp.MustCompile(`%((?:25)*)([01][0-9A-F]|7F|C2%[89][0-9A-F]|EF%B7%[9A][0-9A-F]|EF%BF%B[EF]|F[0-4]%[89AB]F%BF%B[EF])`)

// isForbidden reports whether an attribute may not hold the character: it is a control
// character or none at all.
func isForbidden(r rune) bool {
	return r < ' ' || r >= 0x7f && r <= 0x9f || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
}

// escapeSubject writes a key as a subject: forbidden characters as in a URL, and a % that
// would read as the beginning of one as %25.
func escapeSubject(key string) string {
	if strings.Contains(key, "%") {
		key = escapes.ReplaceAllString(key, "%25$1$2")
	}
	subject := ""
	for {
		at := strings.IndexFunc(key, isForbidden)
		if at < 0 {
			return subject + key
		}
		_, size := utf8.DecodeRuneInString(key[at:])
		subject += key[:at] + url.PathEscape(key[at:at+size])
		key = key[at+size:]
	}
}

// unescapeSubject undoes escapeSubject.
func unescapeSubject(subject string) string {
	return escapes.ReplaceAllStringFunc(subject, func(found string) string {
		if rest, ok := strings.CutPrefix(found, "%25"); ok {
			return "%" + rest
		}
		char, err := url.PathUnescape(found)
		if err != nil {
			return found // The expression finds digits alone.
		}
		return char
	})
}
