package dburl

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config/field"
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

// parseNetwork reads the URL of a database server. The source checks what
// the parameters mean.
func parseNetwork(text string, kind Kind) (URL, error) {
	// The error of url.Parse repeats the URL with its password: never wrap it.
	broken := fmt.Errorf("the URL cannot be read; use %s, "+
		"and in USER and PASSWORD %%40 for @, %%2F for /, %%3A for :, %%23 for #, %%3F for ? and %%25 for %%", kind.Example)
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path, "@") || !strings.HasPrefix(text, u.Scheme+"://") {
		return URL{}, broken
	}
	if kind.Scheme == string(Postgres) && strings.Count(authority(text), "@") > 1 {
		// url.Parse ends the password at the last one, the driver at the first. The driver
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
		return URL{}, errors.New("the URL names no server; use " + kind.Example)
	case !kind.HasDefaults && u.User.Username() == "":
		return URL{}, errors.New("the URL names no user; use " + kind.Example)
	}
	if err := field.CheckPorts(u.Host); err != nil {
		return URL{}, err
	}
	account, logon := accountOf(u, parameters, kind)
	return URL{Secret: field.NewShown(text, redactURL(u, parameters, kind)), dialect: Dialect(kind.Scheme), account: account, logon: logon,
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

// redactURL builds the URL from the parts that are not secret, so that a part
// that was not understood is left out.
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

// accountOf returns the account of a URL on its server, and the secret of its logon.
func accountOf(u *url.URL, parameters url.Values, kind Kind) (account string, logon field.Secret) {
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
	return id.String(), field.NewSecret(password + "\x00" + secret.Encode())
}

// Account identifies the account and its server, without a secret: where wrong
// passwords lock an account, they lock it for all URLs with one id. secret is that of
// the logon. Both are empty for SQLite, which has no accounts.
func (u URL) Account() (id string, secret field.Secret) { return u.account, u.logon }
