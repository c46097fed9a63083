package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Pinned is the search_path of our sessions. In one with other schemas, a role that
// may create objects there runs code as our role: PostgreSQL prefers an operator or a
// function whose types fit better, wherever in the path it is (CVE-2018-1058).
const Pinned = "pg_catalog"

// place knows the schemas in which our tables and INT_LOCK are, so that statements
// name them and sessions need no search_path.
type place struct {
	// path are the schemas of the search_path that the URL asks for, else the role
	// has, without those that are not there; nil until the first connection.
	path       atomic.Pointer[[]string]
	names      atomic.Pointer[names]
	renderings *renderings
	finding    sync.Mutex // so that what is found first does not replace what is found later
}

// names is what was found.
type names struct {
	// ours is where our tables are, or will be made; locks is where INT_LOCK is.
	ours, locks string
	// migrated reports whether our tables are there, complete whether INT_LOCK is too.
	migrated, complete bool
	// kin reports whether the owner of our tables is one of us; see [relation].
	kin bool
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
		if name := string(row[0]); name != Pinned {
			path = append(path, name)
		}
	}
	if len(path) == 0 {
		return fmt.Errorf("%w: it names no schema that is there and that the role may use; use ?search_path=NAME, or GRANT USAGE on the schema", ErrSearchPath)
	}
	p.path.Store(&path)
	return nil
}

// findSQL lists what has the name of INT_LOCK or of our table of migrations, in the
// order of the path, with the facts of a [relation]. A superuser counts as a member of
// every role, so its memberships say nothing. All is qualified: a session behind a
// pooler in transaction mode keeps the path of the role.
const findSQL = `
SELECT c.relname, n.nspname, r.rolname, c.relkind,
       CASE WHEN r.oid OPERATOR(pg_catalog.=) me.oid OR pg_catalog.pg_has_role(r.oid, d.datdba, 'MEMBER')
                 OR NOT me.rolsuper AND pg_catalog.pg_has_role(r.oid, 'MEMBER') THEN ` + kin + `
            WHEN pg_catalog.pg_has_role(r.oid, n.nspowner, 'MEMBER') THEN ` + lord + `
            WHEN NOT pg_catalog.has_schema_privilege(n.oid, 'CREATE') AND NOT EXISTS (
                   SELECT FROM pg_catalog.aclexplode(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) a
                    WHERE a.privilege_type OPERATOR(pg_catalog.=) 'CREATE' AND a.grantee OPERATOR(pg_catalog.<>) r.oid
                      AND NOT pg_catalog.pg_has_role(a.grantee, n.nspowner, 'MEMBER') AND NOT pg_catalog.pg_has_role(a.grantee, d.datdba, 'MEMBER')) THEN ` + sole + `
            ELSE ` + stranger + ` END
  FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS p (name, n)
  JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) p.name::pg_catalog.name
  JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
  JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) c.relowner
  JOIN pg_catalog.pg_roles me ON me.rolname OPERATOR(pg_catalog.=) current_user
  JOIN pg_catalog.pg_database d ON d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
 WHERE c.relname OPERATOR(pg_catalog.=) ANY ('{int_lock,` + SchemaTable + `}'::pg_catalog.name[])
   AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,v,m,f}'::pg_catalog."char"[])
 ORDER BY p.n USING OPERATOR(pg_catalog.<)`

func (p *place) find(ctx context.Context, conn *pgconn.PgConn) error {
	p.finding.Lock()
	defer p.finding.Unlock()
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
		seen[name] = append(seen[name], relation{string(row[1]), string(row[2]), string(row[3]), string(row[4])})
	}
	n := &names{ours: path[0]}
	if tables := seen[SchemaTable]; len(tables) > 0 {
		if err := tables[0].ours(tables[1:]); err != nil {
			return err
		}
		n.ours, n.migrated, n.kin = tables[0].schema, true, tables[0].tie == kin
	}
	n.locks = n.ours
	if tables := seen["int_lock"]; len(tables) > 0 {
		if err := tables[0].locks(n, tables[1:]); err != nil {
			return err
		}
		n.locks, n.complete = tables[0].schema, n.migrated
	}
	p.names.Store(n)
	p.renderings.change(func(r *Rendering) { r.ours, r.locks = n.ours, n.locks })
	return nil
}

// relation is one table of a name. What its owner hangs on it runs as our role.
type relation struct {
	schema, owner string
	kind          string // as pg_class.relkind has it
	tie           string // what makes its owner one whose table may be meant
}

// The ties of an owner, the weakest first.
const (
	stranger = "0"
	sole     = "1" // neither we nor a third role may create in the schema
	lord     = "2" // owns the schema
	kin      = "3" // is our role or one of which it is a member, a superuser, or owns the database
)

// table reports whether a statement on it runs no code that stands for a table.
func (r relation) table() bool { return r.kind == "r" || r.kind == "p" }

// ours returns an error unless our tables are those beside r, the first table of
// migrations in the path.
func (r relation) ours(rest []relation) error {
	switch {
	case !r.table():
		return fmt.Errorf("%w: %s in the schema %s, of the role %s, is not a table; drop it, or use ?search_path=NAME with the schema that is meant",
			ErrSearchPath, SchemaTable, r.schema, r.owner)
	case r.tie == stranger:
		return fmt.Errorf("%w: %s in the schema %s belongs to the role %s, which owns neither that schema nor the database, and whose rights this role has not; "+
			"if it is not a role of observerd, drop the table or set ?search_path=NAME to the intended schema; "+
			"if it is the one that migrates, let it own the schema, or let no other role create there (REVOKE CREATE ON SCHEMA … FROM …)", ErrSearchPath, SchemaTable, r.schema, r.owner)
	}
	return r.first(SchemaTable, rest)
}

// locks returns an error where another INT_LOCK may be meant than r, the first in the
// path. One that another role has made is mostly that of the Java nodes.
func (r relation) locks(n *names, rest []relation) error {
	if r.tie != kin && !r.table() {
		return fmt.Errorf("%w: INT_LOCK in the schema %s, of the role %s, is not a table; drop it, or use ?search_path=NAME with the schema that is meant",
			ErrSearchPath, r.schema, r.owner)
	}
	if n.migrated && r.schema == n.ours {
		return nil
	}
	return r.first("INT_LOCK", rest)
}

// first returns an error where one of the others may be meant rather than r.
func (r relation) first(name string, rest []relation) error {
	for _, other := range rest {
		if r.tie != kin && other.owner != r.owner && other.tie >= r.tie {
			return fmt.Errorf("%w: %s is in %s, of the role %s, and in %s, of the role %s; use ?search_path=NAME with the schema that is meant, or drop the other table",
				ErrSearchPath, name, r.schema, r.owner, other.schema, other.owner)
		}
	}
	return nil
}

// look returns the names, and asks for them where they are not complete.
func (p *place) look(ctx context.Context, pool *sql.DB) (*names, error) {
	if n := p.names.Load(); n != nil && n.complete {
		return n, nil
	}
	err := native(ctx, pool, func(conn *pgx.Conn) error { return p.find(ctx, conn.PgConn()) })
	return p.names.Load(), err
}

// forget makes the next look ask again. Statements go where they went until then.
func (p *place) forget() {
	if n := p.names.Load(); n != nil {
		p.names.Store(&names{ours: n.ours, locks: n.locks, migrated: n.migrated, kin: n.kin})
	}
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

// wordedConnector words the refusals of sessions.
type wordedConnector struct{ driver.Connector }

// Connect implements [driver.Connector].
func (c wordedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, WordSession(err)
	}
	return conn, nil
}
