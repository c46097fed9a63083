package postgres

import (
	"context"
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
			q.name = statementName(q.sql)
			if !c.kept.prepared[q.name] {
				all = append(all, question{sql: q.sql, name: q.name, byPath: q.byPath, describe: true, silent: true})
			}
		}
		all = append(all, q)
	}
	return all
}

// statementName names a statement by its text: sessions of a pooler are shared.
func statementName(text string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	return "observerd_" + strconv.FormatUint(hash.Sum64(), 36)
}

// maxPrepared is how many statements a session prepares: each takes memory of the server.
const maxPrepared = 32

// prepares reports whether the session prepares a read: the single statement of a relation that
// polls read again and again.
func (c *session) prepares(p plan) bool {
	return p.relation.stamp != "" && p.repeats && p.isSingle() && c.kept.settled && c.isOf(12) && !c.source.unprepared.Load()
}

// prepareRead returns the name of a read that a settled session has prepared, or is empty
// where it does not. The server still plans it for the values of each read, as the session
// says: once it took the plan for any, which reads a third of the table. The stamp of the
// table is a part of the name: a statement keeps its columns as they were. One of a former stamp goes.
func (c *session) prepareRead(ctx context.Context, p plan, s step) (name string, err error) {
	if !c.prepares(p) {
		return "", nil
	}
	name, former := statementName(s.sql+p.relation.stamp), c.kept.reads[s.sql]
	if former != "" && former != name {
		if err := c.conn.Deallocate(ctx, former); err != nil {
			return "", err
		}
		delete(c.kept.prepared, former)
	}
	switch {
	case c.kept.prepared[name]:
		return name, nil
	case len(c.kept.prepared) >= maxPrepared:
		return "", nil
	}
	if _, err = c.conn.Prepare(ctx, name, s.sql, nil); refusedWith(err, duplicateName) {
		err = nil
	}
	if err == nil {
		c.kept.prepared[name], c.kept.reads[s.sql] = true, name
	}
	return name, err
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
			c.kept.prepared[q.name] = true
			again = again || duplicate
		}
		if unknown {
			c.source.unprepared.Store(true)
			again = true
		}
	}
	return again
}

func refusedWith(err error, code string) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == code
}
