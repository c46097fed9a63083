package lockdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// pinned is the search_path of our sessions. In one with other schemas, whoever may
// create something there runs code as our role: PostgreSQL prefers an operator or a
// function whose types fit better, wherever in the path it is (CVE-2018-1058).
const pinned = "pg_catalog"

// place knows the schemas in which our tables and INT_LOCK are, so that statements
// name them and sessions need no search_path.
type place struct {
	// path are the schemas of the search_path that the URL asks for, else the role
	// has, without those that are not there; nil until the first connection.
	path  atomic.Pointer[[]string]
	names atomic.Pointer[names]
}

// names is what was found. Two connections may look at once, and find the same.
type names struct {
	// ours is where our tables are, or will be made; locks is where INT_LOCK is.
	ours, locks string
	// migrated reports whether our tables are there, complete whether INT_LOCK is too.
	migrated, complete bool
	// done holds the statements that name the schemas already.
	done sync.Map
}

// learn finds the tables, as far as they are not known, from a session that has the
// path of the role still. asked is the path of the URL; empty: that of the role.
func (p *place) learn(ctx context.Context, conn *pgconn.PgConn, asked string) error {
	if p.path.Load() == nil {
		if err := p.read(ctx, conn, asked); err != nil {
			return err
		}
	}
	if n := p.names.Load(); n != nil && n.complete {
		return nil
	}
	return p.find(ctx, conn)
}

func (p *place) read(ctx context.Context, conn *pgconn.PgConn, asked string) error {
	if asked != "" {
		if err := set(ctx, conn, nil, asked); err != nil {
			return err
		}
	}
	answers, err := conn.Exec(ctx, `SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))`).ReadAll()
	if err != nil {
		return fmt.Errorf("read the search_path: %w", err)
	}
	path := []string{}
	for _, row := range answers[0].Rows {
		if name := string(row[0]); name != pinned {
			path = append(path, name)
		}
	}
	if len(path) == 0 {
		return fmt.Errorf("%w: it names no schema that is there and that the role may use; write ?search_path=NAME, or GRANT USAGE on the schema", ErrSearchPath)
	}
	p.path.Store(&path)
	return nil
}

// findSQL lists what has the name of INT_LOCK or of our table of migrations, in the
// order of the path. The owner is one of us when it is the role itself, one of which
// the role is a member, or a superuser. All is qualified: a session behind a pooler
// in transaction mode keeps the path of the role.
const findSQL = `
SELECT c.relname, n.nspname, r.rolname,
       r.rolsuper OR pg_catalog.pg_has_role(r.oid, 'MEMBER')
  FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS p (name, n)
  JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) p.name::pg_catalog.name
  JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
  JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) c.relowner
 WHERE c.relname OPERATOR(pg_catalog.=) ANY ('{int_lock,` + schemaTable + `}'::pg_catalog.name[])
   AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,v,m,f}'::pg_catalog."char"[])
 ORDER BY p.n USING OPERATOR(pg_catalog.<)`

func (p *place) find(ctx context.Context, conn *pgconn.PgConn) error {
	path := *p.path.Load()
	list, err := pgtype.NewMap().Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, path, nil)
	if err != nil {
		return err
	}
	found := conn.ExecParams(ctx, findSQL, [][]byte{list}, nil, nil, nil).Read()
	if found.Err != nil {
		return fmt.Errorf("look for the tables: %w", found.Err)
	}
	seen := map[string][]relation{}
	for _, row := range found.Rows {
		name := string(row[0])
		seen[name] = append(seen[name], relation{string(row[1]), string(row[2]), string(row[3]) == "t"})
	}
	ours, err := first(schemaTable, seen[schemaTable], "")
	if err != nil {
		return err
	}
	n := &names{ours: ours, migrated: ours != ""}
	if !n.migrated {
		n.ours = path[0]
	}
	if n.locks, err = first("INT_LOCK", seen["int_lock"], ours); err != nil {
		return err
	}
	n.complete = n.migrated && n.locks != ""
	if n.locks == "" {
		n.locks = n.ours
	}
	p.names.Store(n)
	return nil
}

// relation is one table of a name, and whether its owner is one of us.
type relation struct {
	schema, owner string
	trusted       bool
}

// first returns the schema of the first of the tables, empty for none. One that a
// stranger may have put before ours is refused: its triggers would run as our role.
// trusted is a schema that is ours.
func first(name string, all []relation, trusted string) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	f := all[0]
	for _, other := range all[1:] {
		if !f.trusted && f.schema != trusted && f.owner != other.owner {
			return "", fmt.Errorf("%w: %s is in %s, of the role %s, and in %s, of the role %s; write ?search_path=NAME with the schema that is meant, or drop the other table",
				ErrSearchPath, name, f.schema, f.owner, other.schema, other.owner)
		}
	}
	return f.schema, nil
}

// look returns the names, and asks for them where they are not complete.
func (p *place) look(ctx context.Context, pool *sql.DB) (*names, error) {
	if n := p.names.Load(); n != nil && n.complete {
		return n, nil
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	err = conn.Raw(func(driver any) error { return p.find(ctx, driver.(*placedConn).Conn.Conn().PgConn()) })
	return p.names.Load(), err
}

// forget makes the next look ask again.
func (p *place) forget() { p.names.Store(nil) }

// tableName matches the names of tables and of the sequence, in a statement as such,
// or as a text that is cast to regclass.
var tableName = regexp.MustCompile(`'?\b(int_lock|obs_[a-z_]+)\b'?`)

// sql returns the statement with the schemas before all names of tables.
func (p *place) sql(text string) string {
	n := p.names.Load()
	if n == nil {
		return text
	}
	if done, ok := n.done.Load(text); ok {
		return done.(string)
	}
	done := tableName.ReplaceAllStringFunc(text, func(match string) string {
		name := strings.Trim(match, "'")
		qualified := n.of(name).Sanitize()
		if match == "'"+name+"'" {
			return "'" + strings.ReplaceAll(qualified, "'", "''") + "'"
		}
		return strings.Replace(match, name, qualified, 1)
	})
	n.done.Store(text, done)
	return done
}

// of is the table with its schema.
func (n *names) of(table string) pgx.Identifier {
	if table == "int_lock" {
		return pgx.Identifier{n.locks, table}
	}
	return pgx.Identifier{n.ours, table}
}

// prefix is how the name of any table of ours begins.
func (n *names) prefix() string {
	return strings.TrimSuffix(n.of("obs_").Sanitize(), `"`)
}

// migrating is the search_path in which migrations run: they make tables in the
// first schema. pg_catalog comes before all that are named.
func (n *names) migrating() string {
	path := pgx.Identifier{n.ours}.Sanitize()
	if n.locks != n.ours {
		path += ", " + pgx.Identifier{n.locks}.Sanitize()
	}
	return path + ", pg_temp"
}

// placedConnector makes connections whose statements name the schemas.
type placedConnector struct {
	driver.Connector
	place *place
}

// Connect implements [driver.Connector].
func (c placedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &placedConn{conn.(*stdlib.Conn), c.place}, nil
}

// placedConn puts the schemas before the tables of each statement. What goes to the
// driver beside database/sql does so by itself; see [place.sql].
type placedConn struct {
	*stdlib.Conn
	place *place
}

// ExecContext implements [driver.ExecerContext].
func (c *placedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.ExecContext(ctx, c.place.sql(text), args)
}

// QueryContext implements [driver.QueryerContext].
func (c *placedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.QueryContext(ctx, c.place.sql(text), args)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *placedConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return c.Conn.PrepareContext(ctx, c.place.sql(text))
}
