package client

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/source"
)

// errURL says nothing of the text that it is about: the parser's own messages
// quote it, password included.
var errURL = errors.New("use oracle://user:password@host:port/service, with special characters of user and password percent-encoded")

// options are what may follow the question mark; case does not count, and "_"
// or a space are as good as "-".
var options = []string{"connect", "server", "sid", "ssl", "ssl-verify", "wallet", "wallet-password"}

// optionName is what a name has to be like to be repeated in a message.
var optionName = regexp.MustCompile(`^[A-Za-z][A-Za-z _-]{0,30}$`)

// tcps finds the protocol that asks for TLS in a descriptor.
var tcps = regexp.MustCompile(`(?i)\(\s*PROTOCOL\s*=\s*TCPS\s*\)`)

// ParseURL reads where and as whom to log on:
//
//	oracle://user:password@host:port/service
//	oracle://user:password@host:port/?sid=XE
//	oracle://user:password@host1/service?server=host2:1521&server=host3
//	oracle://user:password@/?connect=(DESCRIPTION%3D…)
//
// with the options ssl=true, ssl-verify=false, wallet=/folder and
// wallet-password. Special characters of user and password are
// percent-encoded; a missing port is [DefaultPort]. Fields that no URL holds,
// such as Action, are left to the caller. Errors say what is wrong without
// repeating any part of the URL but the name of an unknown option.
func ParseURL(text string) (Target, error) {
	t, err := parseURL(text)
	if err == nil {
		err = t.Check()
	}
	if err != nil {
		return Target{}, fmt.Errorf("oracle url: %w", err)
	}
	return t, nil
}

func parseURL(text string) (Target, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "oracle", u.Opaque != "":
		return Target{}, errURL
	// What follows an unencoded "#", "?" or "/" of a password looks like these.
	case u.Fragment != "", strings.Contains(u.RawQuery, "@"), strings.Contains(u.RawPath+u.Path, "@"):
		return Target{}, errURL
	case u.User == nil:
		return Target{}, errors.New("the user and the password are missing: " + errURL.Error())
	}
	t := Target{User: u.User.Username(), Service: strings.Trim(u.Path, "/"), Verify: true}
	t.Password, _ = u.User.Password()
	if u.Host != "" {
		t.Servers = []string{u.Host}
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Target{}, errors.New("an option is not percent-encoded as it should be")
	}
	if err := t.set(values); err != nil {
		return Target{}, err
	}
	for i, server := range t.Servers {
		if t.Servers[i], err = hostPort(server); err != nil {
			return Target{}, err
		}
	}
	return t, nil
}

// set applies the options. TLS follows from a wallet or a descriptor, unless
// ssl says otherwise.
func (t *Target) set(values url.Values) error {
	secure := ""
	for _, written := range slices.Sorted(maps.Keys(values)) {
		name, err := known(written)
		if err != nil {
			return err
		}
		given := values[written]
		if name == "server" {
			t.Servers = append(t.Servers, given...)
			continue
		}
		if len(given) != 1 || given[0] == "" {
			return fmt.Errorf("option %s has to have one value", name)
		}
		switch value := given[0]; name {
		case "sid":
			t.SID = value
		case "connect":
			t.Descriptor = strings.NewReplacer("\r", "", "\n", "").Replace(strings.TrimSpace(value))
		case "wallet":
			t.Wallet = value
		case "wallet-password":
			t.WalletPassword = value
		case "ssl":
			secure = strings.ToLower(value)
		case "ssl-verify":
			if t.Verify, err = boolean(name, value); err != nil {
				return err
			}
		}
	}
	t.TLS = t.Wallet != ""
	if t.Descriptor != "" {
		t.TLS = tcps.MatchString(t.Descriptor)
	}
	if secure == "" {
		return nil
	}
	asked, err := boolean("ssl", secure)
	if err == nil && t.Descriptor != "" && asked != t.TLS {
		err = errors.New("ssl contradicts the protocol of the descriptor")
	}
	t.TLS = asked
	return err
}

func known(written string) (string, error) {
	name := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(written))
	if slices.Contains(options, name) {
		return name, nil
	}
	all := "there are " + strings.Join(options, ", ")
	if !optionName.MatchString(written) {
		return "", errors.New("there is an unknown option: " + all)
	}
	if near := source.Nearest(name, options); len(near) > 0 {
		return "", fmt.Errorf("option %q is unknown: use %s", written, near[0])
	}
	return "", fmt.Errorf("option %q is unknown: %s", written, all)
}

func boolean(name, value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "enable", "enabled":
		return true, nil
	case "false", "no", "off", "disable", "disabled":
		return false, nil
	}
	return false, fmt.Errorf("option %s is neither true nor false", name)
}
