package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A parameter with another name is part of a password that was not encoded.
// Oracle's are written with blanks as well.
var parameterName = map[bool]*regexp.Regexp{
	false: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`),
	true:  regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_. -]*$`),
}

// harmless are the parameters of a URL that hold no secret. What is not named
// here is not shown.
var harmless = map[Dialect][]string{
	Postgres: {"application_name", "connect_timeout", "dbname", "host", "port", "search_path", "sslmode",
		"sslrootcert", "target_session_attrs", "user"},
	Oracle: {"connect", "server", "sid", "ssl", "ssl-verify", "wallet"},
	MySQL:  {"socket", "ssl-ca", "ssl-cert", "ssl-server-name", "tls"},
}

// examples show how the URL of each kind of database is written.
var examples = map[Dialect]string{
	Postgres: "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
	Oracle:   "oracle://USER:PASSWORD@HOST:PORT/SERVICE",
	MySQL:    "mysql://USER:PASSWORD@HOST:PORT/DATABASE",
	MariaDB:  "mariadb://USER:PASSWORD@HOST:PORT/DATABASE",
}

func (d Dialect) harmless(name string) bool {
	switch d {
	case MariaDB:
		d = MySQL
	case Oracle:
		name = oracleName(name)
	}
	return slices.Contains(harmless[d], name)
}

// oracleName is the name of a parameter, which Oracle's people write in many
// ways.
func oracleName(name string) string {
	return strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(name))
}

// parseNetwork reads the URL of a database server. What the parameters mean is
// the source's affair.
func parseNetwork(text string, d Dialect) (URL, error) {
	// What url.Parse says repeats the URL, password and all: never wrap it.
	broken := fmt.Errorf("the URL cannot be read; write %s, "+
		"and in USER and PASSWORD %%40 for @, %%2F for /, %%3A for :, %%23 for #, %%3F for ? and %%25 for %%", examples[d])
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path, "@") || !strings.HasPrefix(text, u.Scheme+"://") {
		return URL{}, broken
	}
	if d == Postgres && strings.Count(authority(text), "@") > 1 {
		// url.Parse ends the password at the last one, the driver at the first: it
		// would look up the rest of the password as a host, and name it in errors.
		return URL{}, broken
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return URL{}, broken
	}
	for name := range parameters {
		if !parameterName[d == Oracle].MatchString(name) {
			return URL{}, broken
		}
	}
	switch {
	case d.sourceOnly() && u.Host == "" && u.RawQuery == "":
		return URL{}, errors.New("the URL names no server; write " + examples[d])
	case d.sourceOnly() && u.User.Username() == "":
		return URL{}, errors.New("the URL names no user; write " + examples[d])
	}
	return URL{secret: NewSecret(text), dialect: d, shown: redactURL(u, parameters, d), account: accountOf(u, parameters, d),
		database: cmp.Or(strings.TrimPrefix(u.Path, "/"), parameters.Get("dbname"), parameters.Get("sid"))}, nil
}

// authority is the part of a URL that names user, password and hosts.
func authority(text string) string {
	_, rest, _ := strings.Cut(text, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		return rest[:end]
	}
	return rest
}

// redactURL rebuilds the URL from the parts that are no secret, so that a part
// that was not understood cannot slip through.
func redactURL(u *url.URL, parameters url.Values, d Dialect) string {
	shown := url.URL{Scheme: string(d), Host: u.Host, Path: u.Path}
	if u.User != nil {
		shown.User = url.User(u.User.Username())
		if _, has := u.User.Password(); has {
			shown.User = url.UserPassword(u.User.Username(), hidden)
		}
	}
	query := make(url.Values, len(parameters))
	for name, values := range parameters {
		query[name] = values
		if !d.harmless(name) {
			query[name] = []string{hidden}
		}
	}
	shown.RawQuery = query.Encode()
	return shown.String()
}

// account is whose logon a URL stands for.
type account struct {
	id     string
	secret Secret
}

// accountOf takes a URL apart into who logs on where, and with what secret.
func accountOf(u *url.URL, parameters url.Values, d Dialect) account {
	open, secret := make(url.Values), make(url.Values)
	for name, values := range parameters {
		switch {
		case !d.harmless(name):
			secret[name] = values
		case slices.Contains([]string{"user", "host", "port", "dbname", "server", "sid", "connect", "socket"}, oracleName(name)):
			open[oracleName(name)] = values
		}
	}
	id := url.URL{Scheme: string(d), Host: strings.ToLower(u.Host), Path: u.Path, RawQuery: open.Encode()}
	password := ""
	if u.User != nil {
		id.User = url.User(u.User.Username())
		password, _ = u.User.Password()
	}
	return account{id: id.String(), secret: NewSecret(password + "\x00" + secret.Encode())}
}

// Account names who logs on to which database, without a secret: URLs with one
// account share its fate where a wrong password locks it. Secret is what the
// logon shows. Both are empty for SQLite, which knows no accounts.
func (u URL) Account() (id string, secret Secret) { return u.account.id, u.account.secret }

// withPassword returns the URL with that password in the place of its own.
func (u URL) withPassword(password string) (URL, error) {
	parsed, err := url.Parse(u.Reveal())
	if err != nil {
		return URL{}, errors.New("the URL cannot be read") // It was read before.
	}
	parameters := parsed.Query()
	had := parameters.Has("password")
	parameters.Del("password")
	if parsed.User != nil {
		parsed.User = url.UserPassword(parsed.User.Username(), password)
	} else { // PostgreSQL may name its user among the parameters.
		parameters.Set("password", password)
	}
	if had || parsed.User == nil {
		parsed.RawQuery = parameters.Encode()
	}
	return parseNetwork(parsed.String(), u.dialect)
}
