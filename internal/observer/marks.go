package observer

import (
	"encoding/json"
	"fmt"
	"time"
)

// marks are what the next commit says of the stream: how far it is observed, and of
// which source, query and configuration that holds.
type marks struct {
	// low and newest are those after all rows that were compared so far.
	low, newest string
	// rereadAt is when all rows above the low-water mark were read last.
	rereadAt                            time.Time
	identity, columns, definition, form string
	keys                                KeyForm
	followedFrom                        string
	firstReading                        bool
	refusal                             string
	accepted                            Refusal
}

// marksOf are those of a cursor.
func marksOf(c Cursor) (m marks, err error) {
	m = marks{
		low: c.Low, newest: c.Newest, rereadAt: c.RereadAt, refusal: c.Refusal,
		identity: c.Identity, columns: c.Columns, definition: c.Definition, form: c.Form, followedFrom: c.FollowedFrom, firstReading: c.FirstReading,
	}
	if m.keys, err = DecodeKeyForm(c.KeyForm); err != nil {
		return m, err
	}
	m.accepted, err = DecodeRefusal(c.Accepted)
	return m, err
}

// write puts the marks into a chunk of the query with that fingerprint.
func (m *marks) write(ch *Chunk, fingerprint string) {
	ch.Low, ch.Newest, ch.RereadAt = m.low, m.newest, m.rereadAt
	ch.Fingerprint, ch.Identity, ch.Columns = fingerprint, m.identity, m.columns
	ch.Definition, ch.Form, ch.KeyForm = m.definition, m.form, m.keys.Encode()
	ch.Refusal, ch.Accepted = m.refusal, m.accepted.Encode()
	ch.FollowedFrom, ch.FirstReading = m.followedFrom, m.firstReading
}

// encode writes what the cursor remembers as text.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // Strings and numbers always encode.
	}
	return string(text)
}

// decode reads what [encode] wrote; the zero value of an empty text.
func decode[T any](text, what string) (v T, err error) {
	if text == "" {
		return v, nil
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return v, fmt.Errorf("remembered %s: %w", what, err)
	}
	return v, nil
}
