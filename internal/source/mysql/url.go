package mysql

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/source"
)

// errURL says nothing of the text that it is about: the parser's own messages
// quote it, password included.
var errURL = errors.New("mysql url cannot be read: use mysql://user:password@host:port/database, with special characters of the password percent-encoded")

const defaultPort = "3306"

// address is what a URL says.
type address struct {
	user, password string
	network, host  string // "tcp" and host:port, or "unix" and a path
	database       string
	tls            *tls.Config // nil for a connection in the clear
	fallback       bool        // to the clear, where the server has no TLS
}

func parseURL(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "mysql" && u.Scheme != "mariadb" || u.User == nil || u.User.Username() == "" {
		return address{}, errURL
	}
	// A character of the password that was not encoded ends up elsewhere.
	database := strings.TrimPrefix(u.Path, "/")
	if u.Fragment != "" || strings.Contains(u.RawQuery, "@") || strings.ContainsAny(database, "/@") {
		return address{}, errURL
	}
	if database == "" {
		return address{}, errors.New("mysql url names no database: use mysql://user:password@host:port/database")
	}
	parameters, err := readParameters(u.RawQuery)
	if err != nil {
		return address{}, err
	}
	a := address{user: u.User.Username(), network: "tcp", database: database}
	a.password, _ = u.User.Password()
	a.host = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort))
	if path := parameters["socket"]; path != "" {
		a.network, a.host = "unix", path
	} else if u.Hostname() == "" {
		return address{}, errors.New("mysql url names no host")
	}
	a.tls, a.fallback, err = tlsConfig(parameters, u.Hostname())
	return a, err
}

// known are the parameters of a URL.
var known = []string{"tls", "ssl-ca", "ssl-cert", "ssl-key", "ssl-server-name", "socket"}

// parameterName keeps a message from repeating what is no name at all.
var parameterName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{1,40}$`)

func readParameters(query string) (map[string]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errURL
	}
	parameters := make(map[string]string)
	for name, list := range values {
		if !slices.Contains(known, name) {
			return nil, unknownParameter(name)
		}
		if len(list) > 1 || list[0] == "" {
			return nil, fmt.Errorf("mysql url: parameter %s wants one value", name)
		}
		parameters[name] = list[0]
	}
	return parameters, nil
}

func unknownParameter(name string) error {
	if !parameterName.MatchString(name) {
		return errURL
	}
	nearest := source.Nearest(name, known)
	if len(nearest) == 0 {
		return fmt.Errorf("mysql url: unknown parameter %q; there are %s", name, strings.Join(known, ", "))
	}
	return fmt.Errorf("mysql url: unknown parameter %q; is it %q?", name, nearest[0])
}
