package field

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

// URL is the address of a server; the tag schemes says of which. It is written as a
// [Secret] is, and prints without its password and its parameters, and with http and
// https without its path, which may be a token. The zero value is no URL.
type URL struct {
	secret        Secret
	scheme, shown string
}

// UnmarshalText reads a URL. The error does not repeat it.
func (u *URL) UnmarshalText(text []byte) error {
	parsed, err := url.Parse(string(text))
	switch {
	case err != nil || parsed.Scheme == "" || parsed.Host == "":
		return errors.New("this is not a URL; write SCHEME://HOST:PORT, and encode what is no letter or digit in a password, as %40 for @")
	case parsed.Fragment != "":
		return errors.New("a URL has no # here; encode it as %23")
	}
	*u = URL{secret: NewSecret(string(text)), scheme: parsed.Scheme}
	if strings.HasPrefix(parsed.Scheme, "http") && len(parsed.Path) > 1 {
		parsed.Path, parsed.RawPath = "/xxxxx", ""
	}
	if parsed.RawQuery != "" {
		parsed.RawQuery = "xxxxx"
	}
	u.shown = parsed.Redacted()
	return nil
}

// Reveal returns the whole URL with its secrets, for a client.
func (u URL) Reveal() string { return u.secret.Reveal() }

// Scheme is the part before the colon.
func (u URL) Scheme() string { return u.scheme }

// String returns the URL without its secrets.
func (u URL) String() string { return u.shown }

// GoString hides the secrets from %#v.
func (u URL) GoString() string { return fmt.Sprintf("field.URL(%q)", u.shown) }

// MarshalText hides the secrets from JSON, YAML and the like.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.shown), nil }

// LogValue hides the secrets from logs.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.shown) }
