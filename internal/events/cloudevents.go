package events

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/jsontext"
)

const (
	// encodedHead begins every encoded event; the id and a quote follow it.
	encodedHead = `{"specversion":"1.0","id":"`
	// sourcePrefix comes before the stream. It never names a node: two nodes
	// that observe one stream are one source, or consumers that compare source
	// and id would not recognise a repeat.
	sourcePrefix = "/observerd/"
	// encodedSource follows the id.
	encodedSource = `","source":"` + sourcePrefix
	// encodedTime has microseconds, always six digits: what the coordination
	// database keeps of an instant, so that an event has one text for ever.
	encodedTime = "2006-01-02T15:04:05.000000Z"
	idLength    = 36
	seqDigits   = 20
)

// AppendJSON appends the event as one CloudEvents 1.0 object in structured
// JSON, on one line and without a newline at its end. The result is valid JSON
// whatever the event holds, and equal events have equal texts, so that a
// redelivery can be recognised by its bytes.
//
// Invalid UTF-8 becomes U+FFFD. A time that RFC 3339 cannot write, the zero
// time, an empty subject and empty data are left out, as CloudEvents asks. Data
// that is not JSON travels as data_base64. Characters that no attribute may hold are escaped
// in the subject.
func AppendJSON(dst []byte, e *Event) []byte {
	dst = append(dst, encodedHead...)
	dst = appendUUID(dst, e.ID)
	dst = append(dst, encodedSource...)
	// An escaped path holds nothing that JSON would have to escape again.
	dst = append(dst, url.PathEscape(e.Stream)...)
	dst = append(dst, `","type":`...)
	dst = appendString(dst, e.Type)
	if e.Subject != "" {
		dst = append(dst, `,"subject":`...)
		dst = appendString(dst, escapeSubject(e.Subject))
	}
	dst = appendTime(dst, `,"time":"`, e.Time)
	dst = appendTime(dst, `,"observedtime":"`, e.Observed)
	// Text of fixed width, so that order by string is order by number; a JSON
	// number would lose digits in consumers that read doubles.
	dst = append(dst, `,"sequence":"`...)
	dst = appendPadded(dst, e.Seq)
	dst = append(dst, `","rowversion":`...)
	dst = strconv.AppendInt(dst, e.Version, 10)
	dst = append(dst, `,"change":`...)
	dst = appendString(dst, string(e.Change))
	if e.Snapshot {
		dst = append(dst, `,"snapshot":true`...)
	}
	dst = appendData(dst, e)
	return append(dst, '}')
}

func appendUUID(dst []byte, id uuid.UUID) []byte {
	dst = append(hex.AppendEncode(dst, id[:4]), '-')
	dst = append(hex.AppendEncode(dst, id[4:6]), '-')
	dst = append(hex.AppendEncode(dst, id[6:8]), '-')
	dst = append(hex.AppendEncode(dst, id[8:10]), '-')
	return hex.AppendEncode(dst, id[10:])
}

func appendTime(dst []byte, member string, t time.Time) []byte {
	before := len(dst)
	dst = append(dst, member...)
	if dated := appendInstant(dst, t); len(dated) > len(dst) {
		return append(dated, '"')
	}
	return dst[:before]
}

// appendInstant appends nothing for a time that no event can carry.
func appendInstant(dst []byte, t time.Time) []byte {
	if t = Writable(t.UTC().Truncate(time.Microsecond)); t.IsZero() {
		return dst
	}
	return t.AppendFormat(dst, encodedTime)
}

func appendPadded(dst []byte, n int64) []byte {
	var digits [seqDigits]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	for range seqDigits - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}

func appendData(dst []byte, e *Event) []byte {
	if len(e.Data) == 0 {
		return dst
	}
	if !e.holdsJSON() {
		dst = append(dst, `,"datacontenttype":"application/octet-stream","data_base64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, e.Data)
		return append(dst, '"')
	}
	dst = append(dst, `,"datacontenttype":"application/json","data":`...)
	return appendOneLine(dst, bytes.Trim(e.Data, " \t\r\n"))
}

// appendOneLine leaves out line breaks, which valid JSON holds between its
// tokens only: an event is one line of a file.
func appendOneLine(dst, data []byte) []byte {
	for _, c := range []byte("\r\n") {
		if bytes.IndexByte(data, c) >= 0 {
			data = bytes.ReplaceAll(data, []byte{c}, nil)
		}
	}
	return append(dst, data...)
}

// EncodedID returns the id of an event that [AppendJSON] encoded, without
// reading further than the beginning of the source. It reports false for any
// other text.
func EncodedID(text []byte) (uuid.UUID, bool) {
	rest, ok := bytes.CutPrefix(text, []byte(encodedHead))
	if !ok || len(rest) < idLength || !bytes.HasPrefix(rest[idLength:], []byte(encodedSource)) {
		return uuid.Nil, false
	}
	id, err := uuid.ParseBytes(rest[:idLength])
	// Other spellings of an id are not ours.
	return id, err == nil && bytes.Equal(appendUUID(nil, id), rest[:idLength])
}

// MaybeEncoded reports whether the text may be the beginning, of any length,
// of an event that [AppendJSON] encoded. Who repairs a torn file asks it before
// cutting anything off.
func MaybeEncoded(text []byte) bool {
	n := min(len(text), len(encodedHead))
	return string(text[:n]) == encodedHead[:n]
}

// streamOf undoes what AppendJSON made of the stream.
func streamOf(source string) (string, bool) {
	escaped, ok := strings.CutPrefix(source, sourcePrefix)
	if !ok {
		return "", false
	}
	stream, err := url.PathUnescape(escaped)
	return stream, err == nil
}

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

// ErrNotEvent reports that a text is not an event that [AppendJSON] encoded.
var ErrNotEvent = errors.New("not an event of observerd")

type encoded struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Subject     string          `json:"subject"`
	Time        string          `json:"time"`
	Observed    string          `json:"observedtime"`
	Sequence    string          `json:"sequence"`
	RowVersion  int64           `json:"rowversion"`
	Change      Change          `json:"change"`
	Snapshot    bool            `json:"snapshot"`
	Data        json.RawMessage `json:"data"`
	DataBase64  []byte          `json:"data_base64"`
}

// Decode reads an event that [AppendJSON] encoded. The error is [ErrNotEvent]
// for anything else, and never quotes the text.
func Decode(text []byte) (Event, error) {
	var c encoded
	if err := json.Unmarshal(text, &c); err != nil {
		return Event{}, fmt.Errorf("%w: no valid JSON object", ErrNotEvent)
	}
	if c.SpecVersion != "1.0" {
		return Event{}, notEvent("specversion")
	}
	e := Event{Type: c.Type, Subject: unescapeSubject(c.Subject), Version: c.RowVersion, Change: c.Change, Snapshot: c.Snapshot, Data: c.Data}
	if c.DataBase64 != nil {
		e.Data = c.DataBase64
	}
	var err error
	if e.ID, err = uuid.Parse(c.ID); err != nil {
		return Event{}, notEvent("id")
	}
	var ok bool
	if e.Stream, ok = streamOf(c.Source); !ok {
		return Event{}, notEvent("source")
	}
	if e.Seq, err = strconv.ParseInt(c.Sequence, 10, 64); err != nil {
		return Event{}, notEvent("sequence")
	}
	if e.Time, err = timeOf(c.Time); err != nil {
		return Event{}, notEvent("time")
	}
	if e.Observed, err = timeOf(c.Observed); err != nil {
		return Event{}, notEvent("observedtime")
	}
	return e, nil
}

func timeOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}

func notEvent(attribute string) error {
	return fmt.Errorf("%w: no valid %s", ErrNotEvent, attribute)
}

// appendString appends a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(dst []byte, text string) []byte {
	size := len(dst)
	dst, ok := jsontext.AppendString(dst, text)
	if !ok {
		dst, _ = jsontext.AppendString(dst[:size], strings.ToValidUTF8(text, "\ufffd"))
	}
	return dst
}
