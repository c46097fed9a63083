package field

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// CheckPorts refuses ports that no host has, in the hosts of a URL with commas between.
func CheckPorts(hosts string) error {
	for host := range strings.SplitSeq(hosts, ",") {
		port := (&url.URL{Host: host}).Port()
		if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
			return errors.New("the URL has a port that is not from 1 to 65535; correct it")
		}
	}
	return nil
}

// URL is the address of a server; the tag schemes says of which. It is a [Secret] that
// prints without its password and its parameters, and with http and https without its
// path, which may be a token, as a user without a password may be there and with nats. The
// zero value is no URL.
type URL struct {
	Secret
	// Scheme is the part before the colon.
	Scheme string
}

// UnmarshalText reads a URL. The error does not repeat it.
func (u *URL) UnmarshalText(text []byte) error {
	parsed, err := url.Parse(string(text))
	switch {
	case err != nil || parsed.Scheme == "" || parsed.Host == "":
		return errors.New("this is not a URL; use SCHEME://HOST:PORT, and encode all but letters and digits in a password, such as %40 for @")
	case parsed.Fragment != "":
		return errors.New("a URL has no # here; encode it as %23")
	}
	if err := CheckPorts(parsed.Host); err != nil {
		return err
	}
	web := strings.HasPrefix(parsed.Scheme, "http")
	if web && len(parsed.Path) > 1 {
		parsed.Path, parsed.RawPath = "/xxxxx", ""
	}
	if _, hasPassword := parsed.User.Password(); parsed.User != nil && !hasPassword && (web || parsed.Scheme == "nats") {
		parsed.User = url.User("xxxxx")
	}
	if parsed.RawQuery != "" {
		parsed.RawQuery = "xxxxx"
	}
	*u = URL{NewShown(string(text), parsed.Redacted()), parsed.Scheme}
	return nil
}
