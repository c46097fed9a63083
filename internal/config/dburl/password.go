package dburl

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// brokenPassword finds USER:PASSWORD@ in a text that is not a URL, mostly because of
// a character in the password.
var brokenPassword = regexp.MustCompile(`//[^:@/]*:[^@]+@`)

// HoldsPassword reports whether the text of a URL has a password in it, or would
// have one if it were a URL: variables may have been taken out of it.
func HoldsPassword(text string) bool {
	if strings.HasPrefix(text, "://") {
		text = "x" + text // The scheme is a variable.
	}
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" {
		return brokenPassword.MatchString(text) // A mistake, unless another place overrides it.
	}
	if password, _ := u.User.Password(); password != "" {
		return true
	}
	for name, values := range u.Query() {
		if secretParameter(name) && slices.ContainsFunc(values, func(value string) bool { return value != "" }) {
			return true
		}
	}
	return false
}

// secretParameter reports whether a parameter is a password: password and
// sslpassword of PostgreSQL, wallet-password of Oracle.
func secretParameter(name string) bool {
	return strings.HasSuffix(looseName(name), "password")
}

// WithPassword returns the URL of a server with another password.
func (k Kinds) WithPassword(u URL, password string) (URL, error) {
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
	return k.ParseURL(parsed.String())
}
