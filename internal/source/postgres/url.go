package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// errURL says nothing of the text that it is about: the parsers' own messages
// quote it, password included.
var errURL = errors.New("postgres url cannot be read: write postgres://user:password@host:port/database, with special characters of the password percent-encoded")

func parseURL(text string) (*pgxpool.Config, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, errURL
	}
	config, err := pgxpool.ParseConfig(text)
	if err == nil {
		return config, nil
	}
	// The innermost message names the setting, such as a file of certificates
	// that is missing, and is safe unless the password is part of it.
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	reason := err.Error()
	if leaks(parsed, reason) {
		return nil, errURL
	}
	return nil, fmt.Errorf("postgres url: %s", reason)
}

func leaks(u *url.URL, message string) bool {
	if strings.Contains(message, "://") {
		return true
	}
	passwords := []string{u.Query().Get("password"), u.Query().Get("sslpassword")}
	if u.User != nil {
		p, _ := u.User.Password()
		passwords = append(passwords, p)
	}
	for _, p := range passwords {
		if p != "" && strings.Contains(message, p) {
			return true
		}
	}
	return false
}

// maxSessionName is what PostgreSQL keeps of an application_name.
const maxSessionName = 63

// sessionName makes an application_name that needs no quoting: it is written
// into a statement that takes no parameters.
func sessionName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '\'' || r == '\\' {
			return '?'
		}
		return r
	}, sessionPrefix+name)
	return safe[:min(len(safe), maxSessionName)]
}
