package events

import (
	"net/url"
	"strconv"
	"strings"
)

// Attributes are the names of the attributes of an event in a binary mode of CloudEvents, which
// has each in a header of its own.
var Attributes = [...]string{"specversion", "id", "source", "type", "subject", "time", "observedtime", "sequence", "rowversion", "change", "snapshot"}

// Binary returns the values of [Attributes], empty for those that an event does not have, and the
// content type of its data, as the binary modes of CloudEvents have them: what [AppendJSON]
// writes, one by one. The content type is empty where there are no data.
func Binary(e *Event) (values [len(Attributes)][]byte, contentType string) {
	text, n := make([]byte, 0, 256), 0 // Enough for all but long keys.
	add := func(longer []byte) {
		values[n], text = longer[len(text):len(longer):len(longer)], longer
		n++
	}
	add(append(text, "1.0"...))
	add(appendUUID(text, e.ID))
	add(append(append(text, sourcePrefix...), url.PathEscape(e.Stream)...))
	add(appendValid(text, e.Type))
	add(appendValid(text, escapeSubject(e.Subject)))
	add(appendInstant(text, e.Time))
	add(appendInstant(text, e.Observed))
	add(appendPadded(text, e.Seq))
	add(strconv.AppendInt(text, e.Version, 10))
	add(appendValid(text, string(e.Change)))
	if e.Snapshot {
		add(append(text, "true"...))
	}
	switch {
	case len(e.Data) == 0:
	case e.holdsJSON():
		contentType = "application/json"
	default:
		contentType = "application/octet-stream"
	}
	return values, contentType
}

func appendValid(dst []byte, text string) []byte {
	return append(dst, strings.ToValidUTF8(text, "\uFFFD")...)
}
