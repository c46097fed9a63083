package mysql

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/fn"
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

// describeSQL shows a table, and then its columns. The catalogue compares names as the file system
// does where it looks for one table; a join would make it look at all of them, and a server takes a third
// longer to sort. Bytes have no collation, which differs from column to column.
const describeSQL = `
SELECT 0, CAST(table_name AS BINARY), CAST(table_schema AS BINARY), CAST(table_type AS BINARY), CAST(engine AS BINARY), NULL, NULL, NULL
FROM information_schema.tables
WHERE table_schema = IF(? = '', DATABASE(), ?) AND table_name = ?
UNION ALL
SELECT ordinal_position, CAST(table_name AS BINARY), CAST(column_name AS BINARY), CAST(data_type AS BINARY), CAST(is_nullable AS BINARY),
  CAST(column_type AS BINARY), CAST(collation_name AS BINARY), character_maximum_length
FROM information_schema.columns
WHERE table_schema = IF(? = '', DATABASE(), ?) AND table_name = ?`

// foldedSQL finds a table by its name in other letters, in all tables.
const foldedSQL = `
SELECT table_schema, table_name
FROM information_schema.tables
WHERE LOWER(table_schema) = LOWER(IF(? = '', DATABASE(), ?)) AND LOWER(table_name) = LOWER(?)`

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
	rows, err := c.tableRows(ctx, schema, name)
	if err == nil && len(rows) == 0 {
		var folded [][][]byte
		folded, err = c.rows(ctx, "look up the table", foldedSQL, schema, schema, name)
		if only := onlyNamed(folded, name); len(only) > 0 {
			rows, err = c.tableRows(ctx, string(only[0][0]), string(only[0][1]))
		}
	}
	switch {
	case err != nil:
		return relation{}, err
	case len(rows) == 0:
		return relation{}, c.missingTable(ctx, q.Table, schema)
	}
	return c.tableOf(ctx, rows[0], rows[1:])
}

// tableRows returns the rows of [describeSQL] for one table.
func (c *session) tableRows(ctx context.Context, schema, name string) ([][][]byte, error) {
	rows, err := c.rows(ctx, "look up the table", describeSQL, schema, schema, name, schema, schema, name)
	slices.SortStableFunc(rows, func(a, b [][]byte) int { return source.Number(a[0]) - source.Number(b[0]) })
	if len(rows) > 1 && string(rows[1][0]) == "0" {
		rows = onlyNamed(rows, name)
	}
	return rows, err
}

// onlyNamed refuses to choose among names in other letters, which are in the second column.
func onlyNamed(rows [][][]byte, name string) [][][]byte {
	if len(rows) < 2 {
		return rows
	}
	return slices.DeleteFunc(rows, func(row [][]byte) bool { return string(row[1]) != name })
}

// tableOf reads rows of a table and its columns. What may be NULL in a view was known when it
// was made, and need not be true any more.
func (c *session) tableOf(ctx context.Context, table [][]byte, columns [][][]byte) (relation, error) {
	r := relation{schema: string(table[2]), table: string(table[1]), engine: string(table[4])}
	// SYSTEM VERSIONED tables are such as well; views are not.
	r.base = !strings.Contains(string(table[3]), "VIEW")
	r.name = r.schema + "." + r.table
	r.from = quote(r.schema) + "." + quote(r.table)
	var err error
	switch {
	case r.base && r.engine == "":
		err = c.lockWarned(ctx, "look up the table")
	case len(columns) == 0:
		err = c.lockWarned(ctx, "read columns")
	}
	if err != nil {
		return relation{}, err
	}
	documents, err := c.documents(ctx, r, columns)
	r.collations, r.lengths = make(map[string]string), make(map[string]int)
	for _, row := range columns {
		column := source.Column{Name: string(row[2]), Type: string(row[3]), Nullable: !r.base || string(row[4]) != "NO"}
		if strings.Contains(string(row[5]), "unsigned") {
			column.Type += " unsigned"
		}
		column.KeyRule, column.KeyWidth = keyRule(column.Type, string(row[5]))
		if slices.Contains(documents, column.Name) {
			column.Type = "json"
		}
		column.Encoding = encodings[kindOf(column.Type)]
		r.collations[column.Name] = string(row[6])
		if n, err := strconv.Atoi(string(row[7])); err == nil { // NULL has none.
			r.lengths[column.Name] = n
		}
		r.columns = append(r.columns, column)
	}
	return r, err
}

// documents are the JSON columns of MariaDB, whose type is that of long text:
// what tells them apart is a check. The catalogue shows checks only to accounts that
// may write, the table's definition to all that may read it. An account that may read
// some columns alone is shown neither, and documents are text then.
func (c *session) documents(ctx context.Context, r relation, columns [][][]byte) ([]string, error) {
	long := slices.ContainsFunc(columns, func(row [][]byte) bool {
		return string(row[3]) == "longtext" && strings.HasSuffix(string(row[6]), "_bin")
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
			name := string(row[2])
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
	return source.MissingTable(table, fn.Each(rows, func(row [][]byte) string { return string(row[0]) }), true)
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
