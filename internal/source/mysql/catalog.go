package mysql

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// relation is what a query reads, as the catalogue knows it.
type relation struct {
	schema, table string // empty for a query
	base          bool   // a table, which has indexes and an engine
	engine        string // of a table; empty where the catalogue does not know
	name          string // for messages; empty for a query
	from          string // what follows FROM
	columns       []source.Column
	collations    map[string]string // of the columns of a table that hold text
	lengths       map[string]int    // of those, and of such that hold bytes, at most
}

// The catalogue compares names as the file system does where it looks for one
// table, so the second statement makes it look at all of them.
const tableSQL = `
SELECT table_schema, table_name, table_type, engine
FROM information_schema.tables
WHERE table_schema = IF(? = '', DATABASE(), ?) AND table_name = ?`

const foldedSQL = `
SELECT table_schema, table_name, table_type, engine
FROM information_schema.tables
WHERE LOWER(table_schema) = LOWER(IF(? = '', DATABASE(), ?)) AND LOWER(table_name) = LOWER(?)`

const columnsSQL = `
SELECT column_name, data_type, is_nullable, column_type, collation_name, character_maximum_length
FROM information_schema.columns
WHERE table_schema = ? AND table_name = ?
ORDER BY ordinal_position`

const namesSQL = `
SELECT IF(? = '', table_name, CONCAT(table_schema, '.', table_name))
FROM information_schema.tables
WHERE IF(? = '', table_schema = DATABASE(), table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema'))
ORDER BY 1
LIMIT 5000`

func (c *session) describe(ctx context.Context, q observer.Query) (relation, error) {
	if q.Table == "" {
		return c.describeQuery(ctx, q.SQL)
	}
	schema, name := "", q.Table
	if i := strings.IndexByte(q.Table, '.'); i > 0 {
		schema, name = q.Table[:i], q.Table[i+1:]
	}
	for _, sql := range []string{tableSQL, foldedSQL} {
		rows, err := c.rows(ctx, "look up the table", sql, schema, schema, name)
		if err != nil {
			return relation{}, err
		}
		r, ok := oneRelation(rows, name)
		if !ok {
			continue
		}
		if r.base && r.engine == "" {
			if err := c.lockWarned(ctx, "look up the table"); err != nil {
				return relation{}, err
			}
		}
		return c.withColumns(ctx, r)
	}
	return relation{}, c.missingTable(ctx, q.Table, schema)
}

// oneRelation prefers the exact name; it refuses to choose among others.
func oneRelation(rows [][][]byte, name string) (relation, bool) {
	for _, row := range rows {
		if len(rows) > 1 && string(row[1]) != name {
			continue
		}
		r := relation{schema: string(row[0]), table: string(row[1]), engine: string(row[3])}
		// SYSTEM VERSIONED tables are such as well; views are not.
		r.base = !strings.Contains(string(row[2]), "VIEW")
		r.name = r.schema + "." + r.table
		r.from = quote(r.schema) + "." + quote(r.table)
		return r, true
	}
	return relation{}, false
}

// withColumns reads the columns. What may be NULL in a view was known when it
// was made, and need not be true any more.
func (c *session) withColumns(ctx context.Context, r relation) (relation, error) {
	rows, err := c.rows(ctx, "read columns", columnsSQL, r.schema, r.table)
	if err == nil && len(rows) == 0 {
		err = c.lockWarned(ctx, "read columns")
	}
	if err != nil {
		return relation{}, err
	}
	documents, err := c.documents(ctx, r, rows)
	if err != nil {
		return relation{}, err
	}
	r.collations, r.lengths = make(map[string]string), make(map[string]int)
	for _, row := range rows {
		column := source.Column{Name: string(row[0]), Type: string(row[1]), Nullable: !r.base || string(row[2]) != "NO"}
		if strings.Contains(string(row[3]), "unsigned") {
			column.Type += " unsigned"
		}
		column.KeyRule, column.KeyWidth = keyRule(column.Type, string(row[3]))
		if slices.Contains(documents, column.Name) {
			column.Type = "json"
		}
		column.Encoding = encodings[kindOf(column.Type)]
		r.collations[column.Name] = string(row[4])
		if n, err := strconv.Atoi(string(row[5])); err == nil { // NULL has none.
			r.lengths[column.Name] = n
		}
		r.columns = append(r.columns, column)
	}
	return r, nil
}

// documents are the JSON columns of MariaDB, whose type is that of long text:
// what tells them apart is a check. The catalogue shows checks only to accounts that
// may write, the table's definition to all that may read it. An account that may read
// some columns alone is shown neither, and documents are text then.
func (c *session) documents(ctx context.Context, r relation, columns [][][]byte) ([]string, error) {
	long := slices.ContainsFunc(columns, func(row [][]byte) bool {
		return string(row[1]) == "longtext" && strings.HasSuffix(string(row[4]), "_bin")
	})
	if !c.conn.mariadb || !r.base || !long {
		return nil, nil
	}
	rows, err := c.rows(ctx, "read the table's definition", "SHOW CREATE TABLE "+r.from)
	if err != nil || len(rows) == 0 {
		if observer.ClassOf(err) == observer.ClassQuery {
			return nil, nil
		}
		return nil, err
	}
	var names []string
	for _, line := range strings.Split(string(rows[0][1]), "\n") {
		for _, row := range columns {
			name := string(row[0])
			if strings.HasPrefix(line, "  "+quote(name)+" ") && strings.Contains(line, "CHECK (json_valid("+quote(name)+"))") {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

func (c *session) missingTable(ctx context.Context, table, schema string) error {
	rows, err := c.rows(ctx, "list tables", namesSQL, schema, schema)
	if err != nil {
		return err
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = string(row[0])
	}
	return source.MissingTable(table, names, true)
}

// describeQuery lets the server say what a query would return. It cannot say
// for certain what may be NULL.
func (c *session) describeQuery(ctx context.Context, sql string) (relation, error) {
	r := relation{from: source.Subquery(sql)}
	result, err := c.try(ctx, "describe the query", "", "SELECT * FROM "+r.from+" q LIMIT 0")
	if err != nil {
		return relation{}, err
	}
	for i, name := range result.columns {
		column := source.Column{Name: name, Type: catalogued(result.types[i]), Nullable: true}
		column.KeyRule, column.KeyWidth = keyRule(column.Type, result.widths[i])
		column.Encoding = encodings[kindOf(column.Type)]
		r.columns = append(r.columns, column)
	}
	return r, nil
}
