package dburl

import (
	"errors"
	"fmt"
	"maps"
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
	for name, values := range u.Query() { // As password and sslpassword of PostgreSQL, and wallet-password of Oracle.
		if strings.HasSuffix(looseName(name), "password") && slices.ContainsFunc(values, func(value string) bool { return value != "" }) {
			return true
		}
	}
	return false
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

// WithoutSecrets returns the text of a URL as a configuration has it, with variables in
// the place of its secrets, and their names: prefix_PASSWORD, or prefix and the name of a
// parameter. What is empty is left out.
func WithoutSecrets(u URL, kinds Kinds, prefix string) (text string, variables []string) {
	literal := strings.NewReplacer("${", "$${")
	kind, network := kinds.Of(string(u.Dialect()))
	parsed, err := url.Parse(u.Reveal())
	if !network || err != nil { // It was read before.
		return literal.Replace(u.String()), nil
	}
	var marks []string // Letters alone, which no URL encodes; a variable would be.
	hide := func(name string) string {
		variable := prefix + "_" + strings.ToUpper(strings.NewReplacer("-", "_", " ", "_", ".", "_").Replace(name))
		mark := fmt.Sprintf("observerdSecretNumber%dEnd", len(variables))
		variables, marks = append(variables, variable), append(marks, mark, "${"+variable+"}")
		return mark
	}
	if password, _ := parsed.User.Password(); password != "" {
		parsed.User = url.UserPassword(parsed.User.Username(), hide("password"))
	} else if parsed.User != nil {
		parsed.User = url.User(parsed.User.Username())
	}
	parameters := parsed.Query()
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		switch {
		case kind.harmless(name):
		case strings.Join(parameters[name], "") == "":
			parameters.Del(name)
		default:
			parameters[name] = []string{hide(name)}
		}
	}
	parsed.RawQuery = parameters.Encode()
	return strings.NewReplacer(marks...).Replace(literal.Replace(parsed.String())), variables
}
