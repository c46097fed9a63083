package observer

import (
	"encoding/json"
	"fmt"
	"time"
)

// Marks are what polls remember of a stream, and nothing else reads: no other statement,
// command or metric. The store keeps them as JSON. A zero value is of a stream that began
// before the mark was remembered, or whose operator has reset it.
type Marks struct {
	// Identity is the source's, see [Source.Identity]; empty for none.
	Identity string `json:"identity"`
	// Columns are those of the data, see [EncodeColumns]; empty for none.
	Columns string `json:"columns"`
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
