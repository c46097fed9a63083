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

// named gives fixed questions the names of prepared statements, and adds what prepares those
// that the session has not.
func (c *session) named(questions []question) []question {
	all := make([]question, 0, len(questions)+2)
	for _, q := range questions {
		if q.fixed && !c.source.unprepared.Load() {
			hash := fnv.New64a()
			_, _ = hash.Write([]byte(q.sql)) // Sessions of a pooler are shared: one name, one text.
			q.name = "observerd_" + strconv.FormatUint(hash.Sum64(), 36)
			if !c.has(q.name) {
				all = append(all, question{sql: q.sql, name: q.name, byPath: q.byPath, describe: true, silent: true})
			}
		}
		all = append(all, q)
	}
	return all
}

// renames notes, from the outcome of questions, which statements the session has prepared. It
// reports whether they are to be asked again: a session that we share with others, behind a
// pooler, has a statement already, which the same text has made, or lacks it. Once one
// is lacking, the source prepares none.
func (c *session) renames(questions []question, err error) bool {
	var names []string
	for _, q := range questions {
		if q.name != "" && q.describe {
			names = append(names, q.name)
		}
	}
	again := len(names) > 0 && refusedWith(err, duplicateName)
	if err == nil || again {
		for _, name := range names {
			c.conn.CustomData()[name] = true
		}
	}
	if refusedWith(err, unknownName) && !c.source.unprepared.Load() {
		c.source.unprepared.Store(true)
		return true
	}
	return again
}

// has reports whether the session has prepared a statement.
func (c *session) has(name string) bool {
	_, prepared := c.conn.CustomData()[name]
	return prepared
}

func refusedWith(err error, code string) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == code
}
