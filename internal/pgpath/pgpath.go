// Package pgpath knows what PostgreSQL lets others put into the schemas of a
// search_path. Where an operator or a function of theirs has types that fit better
// than those of pg_catalog, a statement that names no schema runs it with the rights
// of its own role (CVE-2018-1058).
package pgpath

import (
	"encoding/json"
	"errors"
)

// SchemasSQL lists the schemas that have the names $1, a text[]: the name, quoted as
// in a statement like all names that follow, who else
// than its owner may create there, and which operators and functions are not the
// owner's, both as a list in JSON. Left out are the role itself, superusers, those
// with the rights of the schema's or the database's owner, and the owners of the
// tables $2, a text[] of names without a schema: who owns a table that the role writes
// to needs no operator for it. It is to be run with search_path = pg_catalog.
const SchemasSQL = `
WITH path AS (
  SELECT n.oid, n.nspname, n.nspowner, n.nspacl, p.n,
         ARRAY(SELECT r.oid
                 FROM pg_roles r
                WHERE r.rolname = current_user OR pg_has_role(r.oid, n.nspowner, 'MEMBER') OR pg_has_role(r.oid, d.datdba, 'MEMBER')
                   OR r.oid IN (SELECT c.relowner FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = ANY ($2::name[]))) AS trusted
    FROM unnest($1::text[]) WITH ORDINALITY AS p (name, n)
    JOIN pg_namespace n ON n.nspname = p.name::name
    JOIN pg_database d ON d.datname = current_database()
), held AS (
  SELECT path.oid, format('%s of %s', 'operator ' || o.oid::regoperator, quote_ident(pg_get_userbyid(o.oprowner))) AS what, o.oprowner AS owner
    FROM path JOIN pg_operator o ON o.oprnamespace = path.oid
  UNION ALL
  SELECT path.oid, format('%s of %s', 'function ' || f.oid::regprocedure, quote_ident(pg_get_userbyid(f.proowner))), f.proowner
    FROM path JOIN pg_proc f ON f.pronamespace = path.oid
)
SELECT quote_ident(path.nspname),
       to_json(ARRAY(SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
               FROM aclexplode(coalesce(path.nspacl, acldefault('n', path.nspowner))) a
              WHERE a.privilege_type = 'CREATE' AND a.grantee <> ALL (path.trusted)
              ORDER BY 1))::text,
       to_json(ARRAY(SELECT held.what FROM held
              WHERE held.oid = path.oid AND held.owner <> ALL (path.trusted)
              ORDER BY 1 LIMIT 5))::text
  FROM path
 ORDER BY path.n`

// Schema is one row of [SchemasSQL].
type Schema struct {
	Name string
	// Creators are the roles that may create there, or PUBLIC; Strangers are the first
	// five operators and functions that are not the owner's.
	Creators, Strangers []string
}

// Read reads the columns of a row of [SchemasSQL].
func Read(name, creators, strangers []byte) (Schema, error) {
	s := Schema{Name: string(name)}
	return s, errors.Join(json.Unmarshal(creators, &s.Creators), json.Unmarshal(strangers, &s.Strangers))
}
