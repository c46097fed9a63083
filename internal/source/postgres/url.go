package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/internal/source"
)

// errURL says nothing of the text that it is about: the parsers' own messages
// quote it, password included.
var errURL = errors.New("postgres url cannot be read: use postgres://user:password@host:port/database, with special characters of the password percent-encoded")

func parseURL(text string) (*pgxpool.Config, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, errURL
	}
	config, err := pgxpool.ParseConfig(text)
	if err == nil {
		err = readPassfile(config, parsed.Query().Get("passfile"))
	}
	if err == nil {
		return config, nil
	}
	// The message names the setting, or the file that cannot be read, and is safe
	// unless the password is part of it.
	reason := source.RootCause(err)
	if file, is := errors.AsType[*fs.PathError](err); is {
		reason = file
	}
	if leaks(parsed, reason.Error()) {
		return nil, errURL
	}
	return nil, fmt.Errorf("postgres url: %w; use another value at url, or remove it", reason)
}

// readPassfile reports whether a file that is to hold the password can be read. The
// driver would log on without a password.
func readPassfile(config *pgxpool.Config, path string) error {
	if path == "" || config.ConnConfig.Password != "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
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
