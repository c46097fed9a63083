package observer

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Marks are what polls remember of a stream and no statement of the store looks into. The
// zero value of a mark is for a stream that began before it was remembered. A new one is a
// field here; a reset leaves it unless [Marks.Reset] says otherwise.
type Marks struct {
	// Identity is the source's, see [Source.Identity]; empty for none.
	Identity string `json:"identity"`
	// Columns are those of the data, see [EncodeColumns]; empty for none.
	Columns string `json:"columns"`
	// FullColumns are those with which all rows were read last, or are being read; empty for
	// unknown, and where the configuration names them.
	FullColumns string `json:"full_columns"`
	// Order are the names of the columns in the order in which rows have their members, of
	// which the hashes are: a source may list them in another later. Empty for unknown.
	Order string `json:"order"`
	// RereadAt is when the rows above the low-water mark were read last; zero
	// for never. Between two such readings polls begin at Newest.
	RereadAt time.Time `json:"reread_at"`
	// Form is that of the timestamps, see [Horizon.Form]; empty for unknown.
	Form string `json:"form"`
	// KeyForm is the form of the keys, see [KeyForm.Encode]; empty for unknown.
	KeyForm string `json:"key_form"`
	// FollowedFrom is the horizon when the first reading began: rows below it were there
	// before. Empty for unknown.
	FollowedFrom string `json:"followed_from"`
	// later are those of a later version, as members of a JSON object; empty for none.
	later string
}

// Encode writes the marks as the store keeps them, with those of a later version: its nodes
// go on beside this one while they are upgraded, and some marks are written once.
func (m Marks) Encode() string {
	text := encode(m)
	if m.later != "" {
		text = strings.TrimSuffix(text, "}") + "," + strings.TrimPrefix(m.later, "{")
	}
	return text
}

// DecodeMarks reads what [Marks.Encode] wrote, of this version or a later one.
func DecodeMarks(text string) (Marks, error) {
	m, err := decode[Marks](text, "marks")
	if err != nil {
		return m, err
	}
	later, err := decode[map[string]json.RawMessage](text, "marks")
	if err != nil {
		return m, err
	}
	known, err := decode[map[string]json.RawMessage](encode(Marks{}), "marks")
	maps.DeleteFunc(later, func(name string, _ json.RawMessage) bool { return known[name] != nil })
	if len(later) > 0 {
		m.later = encode(later)
	}
	return m, err
}

// Reset returns the marks after a reset, which leaves none of the source. One that rewinds
// leaves no full read either, and one that forgets the rows nothing about these.
func (m Marks) Reset(rewind, forget bool) Marks {
	m.Identity, m.Columns, m.FullColumns, m.Form = "", "", "", ""
	if rewind {
		m.RereadAt = time.Time{}
	}
	if forget {
		m.KeyForm, m.FollowedFrom, m.Order = "", "", ""
	}
	return m
}

// DecodeOrder returns the names in [Marks.Order].
func DecodeOrder(text string) ([]string, error) {
	return decode[[]string](text, "order of the columns")
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
