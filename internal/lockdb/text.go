package lockdb

import "strings"

// storable is the text of an error, whose bytes others have chosen, as both
// databases can keep it: PostgreSQL takes only UTF-8 without NUL.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// unpadded drops the spaces that CHAR(36) adds.
func unpadded(text string) string { return strings.TrimRight(text, " ") }
