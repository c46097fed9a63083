package pgsession

import (
	"encoding/json"
	"errors"
	"strings"
)

// SchemasSQL shows what PostgreSQL lets others put into the schemas of a search_path. Where
// an operator or a function of theirs has types that fit better than those of pg_catalog, a
// statement that names no schema runs it with the rights of its own role (CVE-2018-1058).
//
// It lists the schemas that have the names $1, a text[]: the name, quoted as
// in a statement like all names that follow, the schema's owner where that is a
// stranger, else an empty text, who else may create there, and which operators and
// functions are a stranger's, both as a list in JSON. No strangers are the role itself,
// superusers, those with the rights of the database's owner or of a schema's owner that
// is none, and the owners of the tables that the expression lists, an oid[]: who owns
// a table that the role writes to needs no operator for it. A schema's owner is none
// either where the role is a member of it. It is to be run with search_path = pg_catalog.
func SchemasSQL(tables string) string { return strings.Replace(schemasSQL, "{tables}", tables, 1) }

const schemasSQL = `
WITH friend AS (
  SELECT r.oid
    FROM pg_roles r, pg_database d
   WHERE d.datname = current_database()
     AND (r.rolname = current_user OR pg_has_role(r.oid, d.datdba, 'MEMBER')
          OR r.oid IN (SELECT c.relowner FROM pg_class c WHERE c.oid = ANY ({tables})))
), path AS (
  SELECT n.oid, n.nspname, n.nspowner, n.nspacl, p.n, owner.strange,
         ARRAY(SELECT r.oid
                 FROM pg_roles r
                WHERE r.oid IN (SELECT oid FROM friend) OR NOT owner.strange AND pg_has_role(r.oid, n.nspowner, 'MEMBER')) AS trusted
    FROM unnest($1::text[]) WITH ORDINALITY AS p (name, n)
    JOIN pg_namespace n ON n.nspname = p.name::name
    JOIN pg_roles o ON o.oid = n.nspowner
    JOIN pg_roles me ON me.rolname = current_user,
         LATERAL (SELECT o.rolname <> 'pg_database_owner' AND o.oid NOT IN (SELECT oid FROM friend)
                     AND (me.rolsuper OR NOT pg_has_role(o.oid, 'MEMBER'))) AS owner (strange)
), held AS (
  SELECT path.oid, format('%s of %s', 'operator ' || o.oid::regoperator, quote_ident(pg_get_userbyid(o.oprowner))) AS what, o.oprowner AS owner
    FROM path JOIN pg_operator o ON o.oprnamespace = path.oid
  UNION ALL
  SELECT path.oid, format('%s of %s', 'function ' || f.oid::regprocedure, quote_ident(pg_get_userbyid(f.proowner))), f.proowner
    FROM path JOIN pg_proc f ON f.pronamespace = path.oid
)
SELECT quote_ident(path.nspname),
       CASE WHEN path.strange THEN quote_ident(pg_get_userbyid(path.nspowner)) ELSE '' END,
       to_json(ARRAY(SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
               FROM aclexplode(coalesce(path.nspacl, acldefault('n', path.nspowner))) a
              WHERE a.privilege_type = 'CREATE' AND a.grantee <> path.nspowner AND a.grantee <> ALL (path.trusted)
              ORDER BY 1))::text,
       to_json(ARRAY(SELECT held.what FROM held
              WHERE held.oid = path.oid AND held.owner <> ALL (path.trusted)
              ORDER BY 1 LIMIT 5))::text
  FROM path
 ORDER BY path.n`

// Schema is one row of [SchemasSQL].
type Schema struct {
	Name string
	// Owner is empty unless a stranger owns the schema.
	Owner string
	// Creators are the other strangers that may create there, or PUBLIC; Strangers are
	// the first five operators and functions of strangers.
	Creators, Strangers []string
}

// Read reads the columns of a row of [SchemasSQL].
func Read(name, owner, creators, strangers []byte) (Schema, error) {
	s := Schema{Name: string(name), Owner: string(owner)}
	return s, errors.Join(json.Unmarshal(creators, &s.Creators), json.Unmarshal(strangers, &s.Strangers))
}
