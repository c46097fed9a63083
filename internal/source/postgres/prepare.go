package postgres

import (
	"errors"
	"hash/fnv"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATEs of the names of prepared statements: one that is there, and one that is not.
const (
	duplicateName = "42P05"
	unknownName   = "26000"
)

// withPrepared gives fixed questions the names of prepared statements, and adds what
// prepares those that the session does not have.
func (c *session) withPrepared(questions []question) []question {
	all := make([]question, 0, len(questions)+2)
	for _, q := range questions {
		if q.fixed && !c.source.unprepared.Load() {
			hash := fnv.New64a()
			_, _ = hash.Write([]byte(q.sql)) // Sessions of a pooler are shared: one name, one text.
			q.name = "observerd_" + strconv.FormatUint(hash.Sum64(), 36)
			if !c.hasPrepared(q.name) {
				all = append(all, question{sql: q.sql, name: q.name, byPath: q.byPath, describe: true, silent: true})
			}
		}
		all = append(all, q)
	}
	return all
}

// notePrepared notes, from the outcome of questions, which statements the session has
// prepared. It reports whether to ask them again: behind a pooler a session is shared, and has
// a statement already, of the same text, or has lost it. After a loss the source prepares
// nothing any more.
func (c *session) notePrepared(questions []question, err error) (again bool) {
	duplicate, unknown := refusedWith(err, duplicateName), refusedWith(err, unknownName)
	for _, q := range questions {
		if q.name == "" {
			continue
		}
		if q.describe && (err == nil || duplicate) {
			c.conn.CustomData()[q.name] = true
			again = again || duplicate
		}
		if unknown {
			c.source.unprepared.Store(true)
			again = true
		}
	}
	return again
}

// hasPrepared reports whether the session has prepared a statement.
func (c *session) hasPrepared(name string) bool {
	_, prepared := c.conn.CustomData()[name]
	return prepared
}

func refusedWith(err error, code string) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == code
}
