package sqldb

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/pgsession"
)

// WordSession words an error of a connection that could not be made; every other one
// stays as it is.
func WordSession(err error) error {
	return pgsession.WordSession(err, "database.url", ErrReadOnly, ErrPooler, ErrSearchPath)
}

// Refusal says why the server of the coordination database refuses sessions with
// this URL, in a text without the names of the role and the database that the error
// itself has. It is empty for every other error. A node waits, because the server or
// the URL can be corrected, though time alone fixes nothing. Every host of the URL
// that was tried has to answer: a silent one may come back and accept the node.
func Refusal(err error) string {
	first, answered := "", map[string]bool{}
	for _, attempt := range pgsession.Attempts(err) {
		var server *pgconn.PgError
		said := errors.As(attempt, &server)
		if said && (unavailableState(server.Code) || strings.HasPrefix(server.Code, "XX")) { // XX000: also of a full disk.
			return ""
		}
		if said && first == "" {
			first = worded(server)
		}
		host := pgsession.HostOf(attempt)
		answered[host] = answered[host] || said
	}
	for _, said := range answered {
		if !said {
			return ""
		}
	}
	return first
}

// NoSession reports whether the error is that of a connection that could not be
// made. It names role, database and address, and is not for everyone.
func NoSession(err error) bool {
	return errors.As(err, new(*pgconn.ConnectError))
}

// worded replaces a server's refusal of a session with a text for everyone: the
// server's names roles and databases, and values of the URL.
func worded(server *pgconn.PgError) string {
	switch server.Code {
	case "3D000":
		return "its server has no database of that name"
	case "55000":
		return "its server lets no role connect to that database"
	case "42501":
		if server.File == "guc.c" { // Its file for settings, in every version and language.
			return "its server does not let the role make a setting that is in the URL"
		}
		return "its server does not let the role connect to that database"
	case "42704":
		return "its server refuses a setting that is in the URL, or is older than PostgreSQL 12"
	case "22023", "42601", "42602", "55P02":
		return "its server refuses a setting that is in the URL"
	}
	if strings.HasPrefix(server.Code, "28") {
		return "its server refuses the role, its password or this host"
	}
	return "its server refuses the session with SQLSTATE " + server.Code
}
