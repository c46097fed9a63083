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
	text  *string
	shown string
}

// NewSecret wraps a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return NewShown(text, "***")
}

// NewShown wraps a text of which a part may be shown.
func NewShown(text, shown string) Secret { return Secret{&text, shown} }

// Reveal returns the whole text, for a driver that must send it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String returns what may be shown, as the methods below do.
func (s Secret) String() string { return s.shown }

// GoString is for %#v.
func (s Secret) GoString() string { return fmt.Sprintf("field.Secret(%q)", s.shown) }

// MarshalText is for JSON, YAML and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown), nil }

// LogValue is for logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.shown) }

// UnmarshalText sets the text.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// Report takes mistakes and warnings at a key of a section. Texts hold no secret.
type Report interface {
	Reject(key, text string)
	Warn(key, text string)
}
