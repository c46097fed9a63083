package events

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Attribute is an attribute of an event in a binary mode of CloudEvents, which has it in a
// header of its own.
type Attribute struct{ Name, Value string }

// Binary returns the attributes of an event, and the content type of its data, as the binary
// modes of CloudEvents have them: what [AppendJSON] writes, one by one. The content type is
// empty where there are no data.
func Binary(e *Event) (attributes []Attribute, contentType string) {
	attributes = make([]Attribute, 0, 11)
	add := func(name, value string) {
		if value != "" {
			attributes = append(attributes, Attribute{name, strings.ToValidUTF8(value, "\uFFFD")})
		}
	}
	instant := func(t time.Time) string {
		if t = Writable(t.UTC().Truncate(time.Microsecond)); t.IsZero() {
			return ""
		}
		return t.Format(encodedTime)
	}
	add("specversion", "1.0")
	add("id", e.ID.String())
	add("source", sourcePrefix+url.PathEscape(e.Stream))
	add("type", e.Type)
	add("subject", escapeSubject(e.Subject))
	add("time", instant(e.Time))
	add("observedtime", instant(e.Observed))
	add("sequence", string(appendPadded(nil, e.Seq)))
	add("rowversion", strconv.FormatInt(e.Version, 10))
	add("change", string(e.Change))
	if e.Snapshot {
		add("snapshot", "true")
	}
	switch {
	case len(e.Data) == 0:
	case utf8.Valid(e.Data) && json.Valid(e.Data):
		contentType = "application/json"
	default:
		contentType = "application/octet-stream"
	}
	return attributes, contentType
}
