package dburl

import (
	"fmt"
	"log/slog"
)

// hidden stands for a secret wherever one would be printed.
const hidden = "xxxxx"

// Secret is a text that does not print. The zero value is the empty text.
type Secret struct {
	// A pointer, because fmt reads unexported fields of a struct in which a
	// Secret is itself unexported, past every method; of a pointer it prints
	// the address.
	text *string
}

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{text: &text} }

// Reveal returns the text, for a driver that must send it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String hides the text.
func (s Secret) String() string {
	if s.Reveal() == "" {
		return ""
	}
	return hidden
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("dburl.Secret(%q)", s.String()) }

// MarshalText hides the text from JSON, YAML and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the text from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
