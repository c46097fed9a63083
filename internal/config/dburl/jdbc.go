package dburl

import (
	"regexp"
	"strings"
)

// What is not of these forms as a whole may have a part of a password anywhere.
var (
	jdbc       = regexp.MustCompile(`(?is)^jdbc:([a-z0-9]+):(.*)$`)
	jdbcServer = regexp.MustCompile(`^//((?:` + jdbcHost + `,)*` + jdbcHost + `)/([\w.$-]+)(?:[?;&].*)?$`)
	jdbcFile   = regexp.MustCompile(`^[\w./-]+$`)
	// jdbcLogin is what Oracle's drivers have before the host: themselves, a user and a
	// password. What follows is a service or, behind a colon, a SID.
	jdbcLogin  = regexp.MustCompile(`(?i)^(?:thin|oci8?):[^@]*@`)
	jdbcOracle = regexp.MustCompile(`^([\w.-]+:\d{1,5})([/:])([\w.$-]+)$`)
)

const jdbcHost = `(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?`

// fromJDBC returns the scheme and the URL to write in place of a URL of JDBC; ok is false
// for other URLs. Servers and the name of the database are those of the text where they
// are sure to be no part of a password, which is left out.
func (k Kinds) fromJDBC(text string) (scheme Dialect, instead string, ok bool) {
	m := jdbc.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	name, rest := strings.ToLower(m[1]), m[2]
	if name == string(SQLite) {
		if !jdbcFile.MatchString(rest) {
			rest = "PATH"
		}
		return SQLite, "sqlite:" + rest, true
	}
	kind, ok := k.Of(name)
	if !ok {
		return "", "", false
	}
	return Dialect(kind.Scheme), kind.fromJDBC(rest), true
}

func (k Kind) fromJDBC(rest string) string {
	start := k.Scheme + "://USER:PASSWORD@"
	login := jdbcLogin.FindString(rest)
	rest = rest[len(login):]
	if m := jdbcServer.FindStringSubmatch(rest); m != nil && !strings.Contains(rest, "@") {
		return start + m[1] + "/" + m[2]
	}
	m := jdbcOracle.FindStringSubmatch(rest)
	switch {
	case login == "" || m == nil:
		return k.Example
	case m[2] == ":":
		return start + m[1] + "/?sid=" + m[3]
	}
	return start + m[1] + "/" + m[3]
}
