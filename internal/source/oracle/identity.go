package oracle

import "context"

const (
	databaseSQL = "SELECT TO_CHAR(d.DBID), TO_CHAR(d.RESETLOGS_CHANGE#) FROM V$DATABASE d"
	nameSQL     = "SELECT SYS_CONTEXT('USERENV', 'DB_UNIQUE_NAME'), SYS_CONTEXT('USERENV', 'CON_NAME') FROM DUAL"
	name11gSQL  = "SELECT SYS_CONTEXT('USERENV', 'DB_UNIQUE_NAME'), NULL FROM DUAL"
)

// Identity implements [observer.Source]. V$DATABASE tells one database from
// another, and a database from what became of it when it was opened anew after
// an incomplete recovery. Without that grant there is only its name, which a
// restored database keeps.
func (s *Source) Identity(ctx context.Context) (string, error) {
	g, err := s.granted(ctx)
	if err != nil {
		return "", err
	}
	return inSession(ctx, s, func(c *session) (string, error) {
		if g.database {
			identity, err := c.identity(ctx, "dbid:", databaseSQL)
			if !ungranted(err) {
				return identity, err
			}
			s.grants.Store(nil)
		}
		identity, err := c.identity(ctx, "name:", nameSQL)
		if refused(err, codeUserenv) {
			return c.identity(ctx, "name:", name11gSQL)
		}
		return identity, err
	})
}

func (c *session) identity(ctx context.Context, kind, query string) (string, error) {
	rows, err := c.rows(ctx, "read the database's identity", query)
	if err != nil || len(rows) != 1 || rows[0][0] == "" {
		return "", err
	}
	if rows[0][1] == "" {
		return kind + rows[0][0], nil
	}
	return kind + rows[0][0] + "/" + rows[0][1], nil
}
