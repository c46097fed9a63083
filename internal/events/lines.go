package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/jsontext"
)

const (
	// widestCell is how far a column widens for what is in it; what is longer pushes
	// the rest of its own line aside.
	widestCell = 40
	// longestData is how many bytes of an event's data a line shows.
	longestData = 200
)

// lineHeadings are the columns of a line. OBSERVED is when the event was committed.
var lineHeadings = [...]string{"OBSERVED", "OBSERVER", "SEQUENCE", "TYPE", "CHANGE", "SUBJECT", "DATA"}

// Lines writes events for people, one a line, in columns that widen with what they have
// held. It is no encoding: it leaves out the id and the row's own time, and data from
// longestData bytes on, of which it says how long they are. A terminal has nothing to
// obey in it. The zero value is ready.
type Lines struct{ widths [len(lineHeadings) - 1]int }

// Widen makes room for events that will be appended, so that the heading and the first of
// them are aligned with the others.
func (l *Lines) Widen(batch []Event) {
	for i := range batch {
		l.widen(lineCells(&batch[i]))
	}
}

// AppendHeading appends the names of the columns, without a line end.
func (l *Lines) AppendHeading(dst []byte) []byte { return l.appendRow(dst, lineHeadings[:]) }

// Append appends an event, without a line end.
func (l *Lines) Append(dst []byte, e *Event) []byte {
	return l.appendRow(dst, append(lineCells(e), lineData(e.Data)))
}

// lineCells are all columns but the data.
func lineCells(e *Event) []string {
	observed := "-"
	if !e.Observed.IsZero() {
		observed = jsontext.Timestamp(e.Observed)
	}
	change := string(e.Change)
	if e.Version > 1 {
		change += " v" + strconv.FormatInt(e.Version, 10)
	}
	if e.Snapshot {
		change += " snapshot"
	}
	return []string{observed, lineCell(e.Stream), strconv.FormatInt(e.Seq, 10), lineCell(e.Type), change, lineCell(e.Subject)}
}

// widen gives the columns the width of their cells.
func (l *Lines) widen(cells []string) {
	for i, cell := range cells {
		l.widths[i] = max(l.widths[i], len(lineHeadings[i]), min(utf8.RuneCountInString(cell), widestCell))
	}
}

// appendRow pads all columns but the last.
func (l *Lines) appendRow(dst []byte, cells []string) []byte {
	last := len(cells) - 1
	l.widen(cells[:last])
	for i, cell := range cells[:last] {
		dst = append(dst, cell...)
		dst = append(dst, strings.Repeat(" ", max(l.widths[i]-utf8.RuneCountInString(cell), 0)+2)...)
	}
	return append(dst, cells[last]...)
}

// oneLine escapes what would end the line or part the columns.
var oneLine = strings.NewReplacer("\n", `\n`, "\t", `\t`)

func lineCell(text string) string {
	if text == "" {
		return "-"
	}
	return oneLine.Replace(string(jsontext.AppendHarmless(nil, text)))
}

// lineData is the data on one line, cut where it is long.
func lineData(data json.RawMessage) string {
	var text bytes.Buffer
	switch {
	case len(data) == 0:
		return "-"
	case !utf8.Valid(data) || json.Compact(&text, data) != nil:
		return fmt.Sprintf("(%d bytes that are no JSON)", len(data))
	case text.Len() <= longestData:
		return string(jsontext.AppendHarmless(nil, text.Bytes()))
	}
	begin := bytes.ToValidUTF8(text.Bytes()[:longestData], nil) // Without a part of a character at its end.
	return fmt.Sprintf("%s… (%d bytes)", jsontext.AppendHarmless(nil, begin), text.Len())
}
