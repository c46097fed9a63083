package dburl

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
// Loose ones are written with blanks as well.
var parameterName = map[bool]*regexp.Regexp{
	false: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`),
	true:  regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_. -]*$`),
}

// looseName is the name of a parameter of which case, blanks and "_" for "-" do not
// count.
func looseName(name string) string {
	return strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(name))
}

// parseNetwork reads the URL of a database server. What the parameters mean is
// the source's affair.
func parseNetwork(text string, kind Kind) (URL, error) {
	// What url.Parse says repeats the URL, password and all: never wrap it.
	broken := fmt.Errorf("the URL cannot be read; write %s, "+
		"and in USER and PASSWORD %%40 for @, %%2F for /, %%3A for :, %%23 for #, %%3F for ? and %%25 for %%", kind.Example)
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path, "@") || !strings.HasPrefix(text, u.Scheme+"://") {
		return URL{}, broken
	}
	if kind.Scheme == string(Postgres) && strings.Count(authority(text), "@") > 1 {
		// url.Parse ends the password at the last one, the driver at the first: it
		// would look up the rest of the password as a host, and name it in errors.
		return URL{}, broken
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return URL{}, broken
	}
	for name := range parameters {
		if !parameterName[kind.LooseNames].MatchString(name) {
			return URL{}, broken
		}
	}
	switch {
	case !kind.HasDefaults && u.Host == "" && u.RawQuery == "":
		return URL{}, errors.New("the URL names no server; write " + kind.Example)
	case !kind.HasDefaults && u.User.Username() == "":
		return URL{}, errors.New("the URL names no user; write " + kind.Example)
	}
	return URL{secret: NewSecret(text), dialect: Dialect(kind.Scheme), shown: redactURL(u, parameters, kind), account: accountOf(u, parameters, kind),
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
func redactURL(u *url.URL, parameters url.Values, kind Kind) string {
	shown := url.URL{Scheme: kind.Scheme, Host: u.Host, Path: u.Path}
	if u.User != nil {
		shown.User = url.User(u.User.Username())
		if _, has := u.User.Password(); has {
			shown.User = url.UserPassword(u.User.Username(), hidden)
		}
	}
	query := make(url.Values, len(parameters))
	for name, values := range parameters {
		query[name] = values
		if !kind.harmless(name) {
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
func accountOf(u *url.URL, parameters url.Values, kind Kind) account {
	open, secret := make(url.Values), make(url.Values)
	for name, values := range parameters {
		switch {
		case !kind.harmless(name):
			secret[name] = values
		case slices.Contains(kind.Account, kind.parameter(name)):
			open[kind.parameter(name)] = values
		}
	}
	id := url.URL{Scheme: kind.Scheme, Host: strings.ToLower(u.Host), Path: u.Path, RawQuery: open.Encode()}
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
