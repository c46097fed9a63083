package oracle

import (
	"context"
	"strings"

	"github.com/observerd/observerd/internal/source"
)

// table looks for the name as it is written, then in capitals, which is what
// Oracle makes of a name without quotes.
func (c *session) table(ctx context.Context, table string) (relation, error) {
	for _, name := range []string{table, strings.ToUpper(table)} {
		owner, object := "", name
		if i := strings.IndexByte(name, '.'); i > 0 {
			owner, object = name[:i], name[i+1:]
		}
		r, found, err := c.object(ctx, owner, object, maxSynonyms)
		if found || err != nil {
			return r, err
		}
		if name == strings.ToUpper(table) {
			break
		}
	}
	return relation{}, c.missingTable(ctx, table)
}

const columnsSQL = `SELECT c.OWNER, c.COLUMN_NAME, c.DATA_TYPE, c.NULLABLE
FROM ALL_TAB_COLUMNS c
WHERE c.OWNER = NVL(:1, SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')) AND c.TABLE_NAME = :2
ORDER BY c.COLUMN_ID`

const synonymSQL = `SELECT s.OWNER, s.TABLE_OWNER, s.TABLE_NAME, s.DB_LINK
FROM ALL_SYNONYMS s
WHERE s.OWNER = NVL(:1, SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')) AND s.SYNONYM_NAME = :2`

// maxSynonyms bounds a chain of synonyms, which may be a circle.
const maxSynonyms = 5

// object finds a table or view, or where a synonym leads. A name without an
// owner is of the present schema, or a public synonym.
func (c *session) object(ctx context.Context, owner, name string, depth int) (relation, bool, error) {
	r, found, err := c.columns(ctx, owner, name)
	if found || err != nil || depth == 0 {
		return r, found, err
	}
	owners := []string{owner}
	if owner == "" {
		owners = append(owners, "PUBLIC")
	}
	for _, o := range owners {
		rows, err := c.rows(ctx, "look up the synonym", synonymSQL, o, name)
		if err != nil || len(rows) == 0 {
			if err != nil {
				return relation{}, false, err
			}
			continue
		}
		return c.follow(ctx, rows[0], name, depth)
	}
	return relation{}, false, nil
}

// follow reads through a synonym by its own name, so that it is followed anew
// by each statement. What lies behind a link has no entry in this catalogue.
func (c *session) follow(ctx context.Context, synonym []string, name string, depth int) (relation, bool, error) {
	r := relation{linked: true, others: others{remote: true}}
	if link := synonym[3]; link == "" {
		var found bool
		var err error
		if r, found, err = c.object(ctx, synonym[1], synonym[2], depth-1); !found {
			return relation{}, false, err
		}
	}
	r.from, r.name = source.Quote(synonym[0])+"."+source.Quote(name), synonym[0]+"."+name
	if synonym[0] == "PUBLIC" {
		r.from, r.name = source.Quote(name), name
	}
	return r, true, nil
}

const mviewsSQL = `SELECT m.MVIEW_NAME FROM ALL_MVIEWS m WHERE m.OWNER = :1 AND m.MVIEW_NAME = :2`

func (c *session) columns(ctx context.Context, owner, name string) (relation, bool, error) {
	rows, err := c.rows(ctx, "look up the table", columnsSQL, owner, name)
	if err != nil || len(rows) == 0 {
		return relation{}, false, err
	}
	r := relation{owner: rows[0][0], table: name}
	r.from, r.name = source.Quote(r.owner)+"."+source.Quote(name), r.owner+"."+name
	for _, row := range rows {
		r.columns = append(r.columns, source.Column{Name: row[1], Type: typeName(row[2]), Nullable: row[3] != "N", Encoding: encodingOf(typeName(row[2]))})
	}
	tables, err := c.rows(ctx, "look up the table", tablesSQL, r.owner, r.table)
	if err != nil {
		return relation{}, false, err
	}
	view := len(tables) == 0
	r.linked, r.others.unknown = view, view
	mviews, err := c.rows(ctx, "look up the table", mviewsSQL, r.owner, r.table)
	r.others.materialized = len(mviews) > 0
	return r, true, err
}

const namesSQL = `SELECT o.OWNER, o.OBJECT_NAME
FROM ALL_OBJECTS o
WHERE o.OBJECT_TYPE IN ('TABLE', 'VIEW', 'SYNONYM') AND o.OWNER = NVL(:1, SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')) AND ROWNUM <= 5000`

// missingTable offers names in the capitals in which Oracle keeps them.
func (c *session) missingTable(ctx context.Context, table string) error {
	owner, _, qualified := strings.Cut(strings.ToUpper(table), ".")
	if !qualified {
		owner = ""
	}
	rows, err := c.rows(ctx, "list tables", namesSQL, owner)
	if err != nil {
		return err
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row[1]
		if qualified {
			names[i] = row[0] + "." + row[1]
		}
	}
	return source.MissingTable(table, names, true)
}
