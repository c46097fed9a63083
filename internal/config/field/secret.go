// Package field has the types that settings share beside texts, numbers and durations.
package field

import (
	"fmt"
	"log/slog"
)

// Secret is a text that prints as ***. The configuration has it at its key, where ${NAME}
// may stand, or in a file that the key with the end -file names, if the settings have
// such a key. The zero value is the empty text.
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
	return "***"
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("field.Secret(%q)", s.String()) }

// MarshalText hides the text from JSON, YAML and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets the text.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// LogValue hides the text from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Report takes mistakes and warnings at a key of a section. Texts hold no secret.
type Report interface {
	Reject(key, text string)
	Warn(key, text string)
}
