// Package pgpath knows what PostgreSQL lets others put into the schemas of a
// search_path. Where an operator or a function of theirs has types that fit better
// than those of pg_catalog, a statement that names no schema runs it with the rights
// of its own role (CVE-2018-1058).
package pgpath

import (
	"encoding/json"
	"errors"
)

// SchemasSQL lists the schemas that have the names $1, a text[]: the name, who else
// than its owner may create there, and which operators and functions are not the
// owner's, both as a list in JSON. Left out are the role itself, superusers, members of the
// owner, and the owners of the tables $2, a text[] of names without a schema: who owns
// a table that the role writes to needs no operator for it. It is to be run with
// search_path = pg_catalog.
const SchemasSQL = `
WITH path AS (
  SELECT n.oid, n.nspname, n.nspowner, n.nspacl, p.n,
         ARRAY(SELECT c.relowner FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = ANY ($2::name[])) AS owners
    FROM unnest($1::text[]) WITH ORDINALITY AS p (name, n)
    JOIN pg_namespace n ON n.nspname = p.name::name
), held AS (
  SELECT path.oid, format('%s of %s', 'operator ' || o.oid::regoperator, pg_get_userbyid(o.oprowner)) AS what, o.oprowner AS owner
    FROM path JOIN pg_operator o ON o.oprnamespace = path.oid
  UNION ALL
  SELECT path.oid, format('%s of %s', 'function ' || f.oid::regprocedure, pg_get_userbyid(f.proowner)), f.proowner
    FROM path JOIN pg_proc f ON f.pronamespace = path.oid
)
SELECT path.nspname::text,
       to_json(ARRAY(SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee)::text END
               FROM aclexplode(coalesce(path.nspacl, acldefault('n', path.nspowner))) a
              WHERE a.privilege_type = 'CREATE'
                AND CASE WHEN a.grantee = 0 THEN TRUE
                         ELSE pg_get_userbyid(a.grantee) <> current_user AND a.grantee <> ALL (path.owners) AND NOT pg_has_role(a.grantee, path.nspowner, 'MEMBER') END
              ORDER BY 1))::text,
       to_json(ARRAY(SELECT held.what FROM held
              WHERE held.oid = path.oid AND pg_get_userbyid(held.owner) <> current_user
                AND held.owner <> ALL (path.owners) AND NOT pg_has_role(held.owner, path.nspowner, 'MEMBER')
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

// Open reports whether others can have a say in what the names of the schema mean.
func (s Schema) Open() bool { return len(s.Creators) > 0 || len(s.Strangers) > 0 }

// Read reads the columns of a row of [SchemasSQL].
func Read(name, creators, strangers []byte) (Schema, error) {
	s := Schema{Name: string(name)}
	return s, errors.Join(json.Unmarshal(creators, &s.Creators), json.Unmarshal(strangers, &s.Strangers))
}
