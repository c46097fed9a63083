// Package dburl reads the URLs of databases. A [URL] does not print its secrets, and
// errors about one do not repeat it.
package dburl

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/nearest"
)

// hidden stands for a secret in a URL that is printed.
const hidden = "xxxxx"

// Dialect is a kind of database: sqlite, or the scheme of a [Kind].
type Dialect string

// The databases that can coordinate.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// URL is the address of a database. It prints, logs and marshals without its
// password and without the values of parameters that are not known to be
// harmless. The zero value is no URL.
type URL struct {
	field.Secret // Reveal gives the whole URL, that of an SQLite file always "sqlite:" and its path.

	dialect Dialect
	path    string
	account string
	logon   field.Secret
	// database is its name on its server.
	database string
}

// coordinationForm says what to write in place of a URL that cannot coordinate.
const coordinationForm = "use sqlite:PATH or postgres://USER@HOST/DATABASE"

// supported says what to write in place of a URL that cannot be used.
func (k Kinds) supported() string {
	schemes := fn.Each(k, func(kind Kind) string { return kind.Scheme })
	return "use sqlite:PATH, or " + nearest.Either(schemes) + "://USER@HOST/DATABASE"
}

// unsupported are schemes of databases that are known, and not supported yet.
var unsupported = regexp.MustCompile(`^(sqlserver|mssql|db2|mongodb|redis|cockroachdb|duckdb):`)

// ParseURL reads the URL of a database. The text of an error repeats nothing of the
// URL but the name of an unsupported kind of database, and what is open in one of JDBC.
func (k Kinds) ParseURL(text string) (URL, error) { return k.parseURL(text, k.supported()) }

// ParseCoordination reads the URL of the coordination database.
func (k Kinds) ParseCoordination(text string) (URL, error) {
	u, err := k.parseURL(text, coordinationForm)
	dialect := u.dialect
	if scheme, _, ok := k.fromJDBC(text); ok {
		dialect = scheme
	}
	if dialect != "" && dialect != SQLite && dialect != Postgres {
		return URL{}, fmt.Errorf("%s is read as a source only; the coordination database is PostgreSQL or SQLite: %s", dialect, coordinationForm)
	}
	if err == nil && u.dialect == Postgres {
		err = checkWritable(text)
	}
	if err != nil {
		return URL{}, err
	}
	return u, nil
}

// checkWritable refuses a URL of PostgreSQL that asks for servers which only read.
func checkWritable(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("the URL cannot be read") // It was read before.
	}
	switch attrs := u.Query().Get("target_session_attrs"); attrs {
	case "read-only", "standby", "prefer-standby":
		return fmt.Errorf("target_session_attrs=%s asks for a server that cannot be written; leave it out, and every connection goes to the primary", attrs)
	}
	return nil
}

func (k Kinds) parseURL(text, instead string) (URL, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	if scheme == string(SQLite) {
		return parseSQLite(rest)
	}
	if kind, ok := k.Of(scheme); ok {
		return parseNetwork(text, kind)
	}
	if _, url, ok := k.fromJDBC(text); ok {
		if strings.ContainsAny(text, "?;&") {
			url += ", and its parameters as docs/configuration.md names them"
		}
		return URL{}, errors.New("this is a URL of JDBC; use " + url)
	}
	if m := unsupported.FindStringSubmatch(strings.TrimPrefix(text, "jdbc:")); m != nil {
		return URL{}, fmt.Errorf("this version does not support %s yet; %s", m[1], instead)
	}
	return URL{}, errors.New("this is not the URL of a supported database; " + instead)
}

func parseSQLite(rest string) (URL, error) {
	path := rest
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		if path = after; !strings.HasPrefix(path, "/") {
			return URL{}, errors.New("the URL of an SQLite file has no host; use sqlite:PATH, or sqlite:/PATH from the root")
		}
	}
	switch {
	case path == "":
		return URL{}, errors.New("the URL names no file; use sqlite:PATH")
	case strings.Contains(path, ":memory:"):
		return URL{}, errors.New("a database in memory is forgotten and cannot be shared; use sqlite:PATH")
	case strings.ContainsAny(path, "?#\x00"):
		return URL{}, errors.New("the URL of an SQLite file has no parameters; use sqlite:PATH, without ? and #")
	case strings.HasSuffix(path, "/"):
		return URL{}, errors.New("the URL names a directory; use sqlite:PATH of a file")
	}
	path = filepath.Clean(path)
	text := "sqlite:" + path
	return URL{Secret: field.NewShown(text, text), dialect: SQLite, path: path, database: filepath.Base(path)}, nil
}

// IsZero reports whether there is no URL.
func (u URL) IsZero() bool { return u.dialect == "" }

// Dialect is the kind of the database.
func (u URL) Dialect() Dialect { return u.dialect }

// Database is the name of the database on its server, or of the file without its
// folder: it is the same on all ways to the database.
func (u URL) Database() string { return u.database }

// Path is the file of an SQLite database; a relative one starts at the working
// directory of the process. Empty for others.
func (u URL) Path() string { return u.path }

// Kinds are the kinds of database servers that are known.
type Kinds []Kind

// Kind is a kind of database server, with the fields of source.Kind.
type Kind struct {
	Scheme            string
	Aliases           []string
	Example           string
	Harmless, Account []string

	LooseNames, HasDefaults, Fetches bool
}

// Of returns the kind of the database servers whose URLs begin with that scheme.
func (k Kinds) Of(scheme string) (Kind, bool) {
	return fn.Find(k, func(kind Kind) bool { return kind.Scheme == scheme || slices.Contains(kind.Aliases, scheme) })
}

// harmless reports whether a parameter holds no secret.
func (k Kind) harmless(name string) bool { return slices.Contains(k.Harmless, k.parameter(name)) }

// parameter is the name of a parameter as Harmless has it.
func (k Kind) parameter(name string) string {
	if k.LooseNames {
		return looseName(name)
	}
	return name
}
