// Package pgsession knows what a session of PostgreSQL, of a source or of the coordination
// database, takes from its role, its database and its URL: the encoding of its texts, and
// the schemas of its search_path.
package pgsession

import (
	"maps"
	"strings"
)

// Encoding is the client_encoding of every session of ours.
const Encoding = "UTF8"

// Pin asks for a setting in the startup packet, whose parameters are params. There it comes
// before what a role, a database, PGOPTIONS and the options of a URL set. It has to be one
// that PgBouncer takes there. asked is what the URL itself asks for.
func Pin(params map[string]string, name, value string) (asked string) {
	asked = Take(params, name)
	params[name] = value
	return asked
}

// Take removes a parameter, whose name has any case, and returns its value.
func Take(params map[string]string, name string) (value string) {
	maps.DeleteFunc(params, func(key, was string) bool {
		if !strings.EqualFold(key, name) {
			return false
		}
		value = was
		return true
	})
	return value
}

// ASCII is the server_encoding of a database that does not know which characters its
// bytes are. The server converts no text of it.
const ASCII = "SQL_ASCII"
