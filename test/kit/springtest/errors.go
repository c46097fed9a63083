package springtest

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrLost is the ConcurrentModificationException of an unlock that finds no
// row. Up to 6.3 nobody is told.
var ErrLost = errors.New("lock was released in the store due to expiration")

// swallows reports whether an INSERT that fails so means that another holds the
// lock: since 6.0 every DataIntegrityViolationException does, before it the
// DuplicateKeyException.
func (r *Repository) swallows(err error) bool {
	code := state(err)
	if r.options.Generation == Spring5 {
		return code == "23505"
	}
	return strings.HasPrefix(code, "23") || strings.HasPrefix(code, "22")
}

// transient reports whether the registry tries again at once: a
// TransientDataAccessException, such as a failed serialization or a deadlock.
func transient(err error) bool {
	code := state(err)
	return strings.HasPrefix(code, "40") || code == "57014" || code == "55P03"
}

// state is the SQLSTATE of the first error of the server in err, if any.
func state(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
