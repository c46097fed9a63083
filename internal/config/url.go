package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Dialect is a kind of database.
type Dialect string

// The databases that this version speaks to.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// URL is the address of a database. It prints, logs and marshals without its
// password and without the values of parameters that are not known to be
// harmless. The zero value is no URL.
type URL struct {
	secret  Secret
	dialect Dialect
	path    string
	shown   string
}

const supported = "write sqlite:PATH or postgres://USER@HOST/DATABASE"

// foreign are schemes of databases that are known, and not yet spoken to.
var foreign = regexp.MustCompile(`^(oracle|mysql|mariadb|sqlserver|mssql|db2|mongodb|redis|cockroachdb|duckdb|jdbc):`)

// ParseURL reads the URL of a database. The text of an error holds nothing of
// the URL but the name of an unsupported kind of database.
func ParseURL(text string) (URL, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	switch scheme {
	case "sqlite":
		return parseSQLite(rest)
	case "postgres", "postgresql":
		return parsePostgres(text)
	}
	if m := foreign.FindStringSubmatch(text); m != nil {
		return URL{}, fmt.Errorf("this version does not support %s yet; %s", m[1], supported)
	}
	return URL{}, errors.New("this is not the URL of a supported database; " + supported)
}

func parseSQLite(rest string) (URL, error) {
	path := rest
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		if path = after; !strings.HasPrefix(path, "/") {
			return URL{}, errors.New("the URL of an SQLite file has no host; write sqlite:PATH, or sqlite:/PATH from the root")
		}
	}
	switch {
	case path == "":
		return URL{}, errors.New("the URL names no file; write sqlite:PATH")
	case strings.Contains(path, ":memory:"):
		return URL{}, errors.New("a database in memory is forgotten and cannot be shared; write sqlite:PATH")
	case strings.ContainsAny(path, "?#\x00"):
		return URL{}, errors.New("the URL of an SQLite file has no parameters; write sqlite:PATH, without ? and #")
	case strings.HasSuffix(path, "/"):
		return URL{}, errors.New("the URL names a directory; write sqlite:PATH of a file")
	}
	path = filepath.Clean(path)
	text := "sqlite:" + path
	return URL{NewSecret(text), SQLite, path, text}, nil
}

// A parameter with another name is part of a password that was not encoded.
var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

func parsePostgres(text string) (URL, error) {
	// What url.Parse says repeats the URL, password and all: never wrap it.
	broken := errors.New("the URL cannot be read; write postgres://USER:PASSWORD@HOST:PORT/DATABASE, " +
		"and in USER and PASSWORD %40 for @, %2F for /, %3A for :, %23 for #, %3F for ? and %25 for %")
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path, "@") {
		return URL{}, broken
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return URL{}, broken
	}
	for name := range parameters {
		if !parameterName.MatchString(name) {
			return URL{}, broken
		}
	}
	if !strings.HasPrefix(text, u.Scheme+"://") {
		return URL{}, broken
	}
	return URL{NewSecret(text), Postgres, "", redactURL(u, parameters)}, nil
}

// redactURL rebuilds the URL from the parts that are no secret, so that a part
// that was not understood cannot slip through.
func redactURL(u *url.URL, parameters url.Values) string {
	harmless := []string{"application_name", "connect_timeout", "dbname", "host", "port", "search_path", "sslmode",
		"sslrootcert", "target_session_attrs", "user"}
	shown := url.URL{Scheme: "postgres", Host: u.Host, Path: u.Path}
	if u.User != nil {
		shown.User = url.User(u.User.Username())
		if _, has := u.User.Password(); has {
			shown.User = url.UserPassword(u.User.Username(), hidden)
		}
	}
	for name := range parameters {
		if !slices.Contains(harmless, name) {
			parameters.Set(name, hidden)
		}
	}
	shown.RawQuery = parameters.Encode()
	return shown.String()
}

// IsZero says that there is no URL.
func (u URL) IsZero() bool { return u.dialect == "" }

// Dialect is the kind of the database.
func (u URL) Dialect() Dialect { return u.dialect }

// Path is the file of an SQLite database; a relative one starts at the working
// directory of the process. Empty for others.
func (u URL) Path() string { return u.path }

// Reveal returns the whole URL with its secrets, for the driver. That of an
// SQLite file is always "sqlite:" and its path.
func (u URL) Reveal() string { return u.secret.Reveal() }

// String returns the URL without its secrets.
func (u URL) String() string { return u.shown }

// GoString hides the secrets from %#v.
func (u URL) GoString() string { return fmt.Sprintf("config.URL(%q)", u.shown) }

// MarshalText hides the secrets from JSON, YAML and the like.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.shown), nil }

// LogValue hides the secrets from logs.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.shown) }
