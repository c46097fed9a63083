package oracle

import (
	"context"
	"strings"
)

// identification is how a database is known: two columns, and what follows DUAL for them.
type identification struct{ kind, columns, from string }

// identifications are tried in this order: 11g has no containers.
var identifications = []identification{
	{kind: "dbid:", columns: "TO_CHAR(d.DBID), TO_CHAR(d.RESETLOGS_CHANGE#)", from: ", V$DATABASE d"},
	{kind: "name:", columns: "SYS_CONTEXT('USERENV', 'DB_UNIQUE_NAME'), SYS_CONTEXT('USERENV', 'CON_NAME')"},
	{kind: "name:", columns: "SYS_CONTEXT('USERENV', 'DB_UNIQUE_NAME'), NULL"},
}

// Identity implements [observer.Source]. V$DATABASE tells one database from
// another, and a database from what became of it when it was opened anew after
// an incomplete recovery. Without that grant there is only its name, which a
// restored database keeps.
func (s *Source) Identity(ctx context.Context) (string, error) {
	a, err := s.activity(ctx, relation{})
	return a.identity, err
}

// identification finds out by trying.
func (c *session) identification(ctx context.Context) (i identification, err error) {
	for _, i = range identifications {
		_, err = c.rows(ctx, "read the database's identity", "SELECT "+i.columns+" FROM DUAL"+i.from)
		if !ungranted(err) && !refused(err, codeUserenv) {
			break
		}
	}
	return i, err
}

// identity is of the columns of an identification, of which the second may be empty.
func (i identification) identity(columns []string) string {
	if columns[0] == "" {
		return ""
	}
	return strings.TrimSuffix(i.kind+strings.Join(columns, "/"), "/")
}
