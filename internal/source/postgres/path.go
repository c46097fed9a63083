package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/pgsession"
	"github.com/observerd/observerd/internal/source"
)

// pathSQL lists the schemas in which the reader looks names up, as an array, and
// names the reader.
const pathSQL = "SELECT pg_catalog.current_schemas(false), pg_catalog.quote_ident(current_user)"

// schemasSQL trusts the owner of a schema from which the reader reads. One that has
// put a table into the schema of another may be the risk.
var schemasSQL = pgsession.SchemasSQL(`ARRAY(SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.oid = ANY ($2::oid[]) AND pg_has_role(c.relowner, n.nspowner, 'MEMBER'))`)

// pathRisks says which other roles may have code of theirs run by the reader: what a query
// says, and what the functions say that it calls, is looked up in the path.
func (c *session) pathRisks(ctx context.Context, r relation) ([]source.Risk, error) {
	const operation = "look who may create in the schemas of the search_path"
	path, err := c.rowsByPath(ctx, operation, pathSQL)
	if err != nil {
		return nil, err
	}
	rows, err := c.rows(ctx, operation, schemasSQL, string(path[0][0]), r.tableList())
	if err != nil {
		return nil, err
	}
	reader := string(path[0][1])
	var risks []source.Risk
	for _, row := range rows {
		s, err := pgsession.Read(row[0], row[1], row[2], row[3])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", operation, err)
		}
		const why = "An operator or function there that fits the arguments better than the one that is meant runs with the rights of that account when a query of an observer is read."
		without := fmt.Sprintf("leave the schema out of the path: ALTER ROLE %s SET search_path = …;", reader)
		if s.Owner != "" {
			risks = append(risks, source.Risk{
				Saw: fmt.Sprintf("schema %s, which is in the search_path of %s, belongs to %s, and nothing that is read there does", s.Name, reader, s.Owner),
				Why: why, Do: fmt.Sprintf("Unless %s is trusted with that account, %s", s.Owner, without),
			})
		}
		if len(s.Creators) > 0 {
			creators := strings.Join(s.Creators, ", ")
			risks = append(risks, source.Risk{
				Saw: fmt.Sprintf("others than its owner may create in schema %s, which is in the search_path of %s: %s", s.Name, reader, creators),
				Why: why, Do: fmt.Sprintf("REVOKE CREATE ON SCHEMA %s FROM %s; or %s", s.Name, creators, without),
			})
		}
		if len(s.Strangers) > 0 {
			risks = append(risks, source.Risk{
				Saw: fmt.Sprintf("schema %s, which is in the search_path of %s, has functions or operators of others than its owner: %s", s.Name, reader, strings.Join(s.Strangers, ", ")),
				Why: why, Do: fmt.Sprintf(`Look at them with \df+ %[1]s.* and \do+ %[1]s.* in psql, and drop what is not needed; or %s`, s.Name, without),
			})
		}
	}
	return risks, nil
}
