package postgres

import (
	"context"
	"fmt"

	"github.com/observerd/observerd/internal/source"
)

// pathSQL lists the schemas in which the reader looks names up, as an array.
const pathSQL = "SELECT pg_catalog.current_schemas(false)"

// pathRisksSQL lists those of the schemas in which somebody else than who owns the
// schema or the database, a superuser or the reader may create, or has functions or
// operators. Roles with the rights of an owner are taken for it.
const pathRisksSQL = `
SELECT r.*
  FROM (SELECT quote_ident(n.nspname), quote_ident(current_user),
               (SELECT string_agg(CASE WHEN c.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(c.grantee)) END, ', ')
                  FROM (SELECT DISTINCT a.grantee FROM aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a WHERE a.privilege_type = 'CREATE') c
                 WHERE c.grantee = 0 OR NOT (c.grantee = u.oid OR pg_has_role(c.grantee, n.nspowner, 'MEMBER') OR pg_has_role(c.grantee, d.datdba, 'MEMBER'))) AS creators,
               (SELECT string_agg(quote_ident(pg_get_userbyid(o.owner)), ', ')
                  FROM (SELECT oprowner AS owner FROM pg_operator WHERE oprnamespace = n.oid
                        UNION SELECT proowner FROM pg_proc WHERE pronamespace = n.oid) o
                 WHERE NOT (o.owner = u.oid OR pg_has_role(o.owner, n.nspowner, 'MEMBER') OR pg_has_role(o.owner, d.datdba, 'MEMBER'))) AS owners
          FROM unnest($1::name[]) WITH ORDINALITY AS p(name, place)
          JOIN pg_namespace n ON n.nspname = p.name
          JOIN pg_database d ON d.datname = current_database()
          JOIN pg_roles u ON u.rolname = current_user
         ORDER BY p.place) r
 WHERE r.creators IS NOT NULL OR r.owners IS NOT NULL`

// pathRisks says who else may have code of theirs run by the reader: what a query
// says, and what the functions say that it calls, is looked up in the path.
func (c *session) pathRisks(ctx context.Context) ([]source.Risk, error) {
	const operation = "look who may create in the schemas of the search_path"
	path, err := c.rowsByPath(ctx, operation, pathSQL)
	if err != nil {
		return nil, err
	}
	rows, err := c.rows(ctx, operation, pathRisksSQL, string(path[0][0]))
	if err != nil {
		return nil, err
	}
	var risks []source.Risk
	for _, row := range rows {
		schema, reader := string(row[0]), string(row[1])
		const why = "An operator or function there that fits the arguments better than the one that is meant runs with the rights of that account when a query of an observer is read."
		without := fmt.Sprintf("leave the schema out of the path: ALTER ROLE %s SET search_path = …;", reader)
		if row[2] != nil {
			risks = append(risks, source.Risk{
				Saw: fmt.Sprintf("others than its owner may create in schema %s, which is in the search_path of %s: %s", schema, reader, row[2]),
				Why: why, Do: fmt.Sprintf("REVOKE CREATE ON SCHEMA %s FROM %s; or %s", schema, row[2], without),
			})
		}
		if row[3] != nil {
			risks = append(risks, source.Risk{
				Saw: fmt.Sprintf(`schema %s, which is in the search_path of %s, has functions or operators of others than its owner: of %s`, schema, reader, row[3]),
				Why: why, Do: fmt.Sprintf(`Look at them with \df+ %[1]s.* and \do+ %[1]s.* in psql, and drop what nobody needs; or %s`, schema, without),
			})
		}
	}
	return risks, nil
}
