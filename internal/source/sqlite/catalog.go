package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// relation is what a query reads, as the catalogue knows it.
type relation struct {
	name    string // as the catalogue spells it; empty for a query
	view    bool
	from    string // what follows FROM
	columns []source.Column
}

const tableSQL = `
SELECT s.name, s.type, c.name, c.type, c."notnull" OR c.pk = 1 AND upper(c.type) = 'INTEGER'
FROM sqlite_schema AS s
JOIN pragma_table_xinfo(s.name) AS c
WHERE s.name = $1 COLLATE NOCASE
  AND s.type IN ('table', 'view')
  AND c.hidden <> 1
ORDER BY c.cid`

const namesSQL = `
SELECT name
FROM sqlite_schema
WHERE type IN ('table', 'view')
  AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
ORDER BY name
LIMIT 5000`

func (s session) describe(ctx context.Context, q observer.Query) (relation, error) {
	if err := source.CheckQuery(q); err != nil {
		return relation{}, source.Unfit(err)
	}
	if q.Table == "" {
		return s.describeQuery(ctx, q.SQL)
	}
	name := q.Table
	if len(name) > len("main.") && strings.EqualFold(name[:len("main.")], "main.") {
		name = name[len("main."):]
	}
	var r relation
	err := each(ctx, s.db, tableSQL, []any{name}, func(rows *sql.Rows) error {
		var kind string
		var c source.Column
		var notNull bool
		if err := rows.Scan(&r.name, &kind, &c.Name, &c.Type, &notNull); err != nil {
			return err
		}
		c.Nullable, c.KeyRule, c.Encoding = !notNull, keyRule(c.Type), encodingOf(c.Type)
		r.view = kind == "view"
		r.columns = append(r.columns, c)
		return nil
	})
	if err != nil {
		return relation{}, s.translate(ctx, "look up the table", err)
	}
	if len(r.columns) == 0 {
		return relation{}, s.missingTable(ctx, q.Table)
	}
	r.from = source.Quote(r.name)
	return r, nil
}

func (s session) missingTable(ctx context.Context, table string) error {
	names, err := column[string](ctx, s.db, namesSQL)
	if err != nil {
		return s.translate(ctx, "list tables", err)
	}
	return source.MissingTable(table, names, false)
}

// describeQuery prepares the query and reads the names of its columns. It
// cannot say what may be NULL, as an outer join makes anything so.
func (s session) describeQuery(ctx context.Context, text string) (relation, error) {
	r := relation{from: source.Subquery(text)}
	const operation = "describe the query"
	first := step{sql: "SELECT * FROM " + r.from + " q LIMIT 0"}
	rows, err := s.db.QueryContext(ctx, first.sql)
	if err != nil {
		return relation{}, s.overRows(ctx, operation, err, first)
	}
	types, err := rows.ColumnTypes()
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return relation{}, s.overRows(ctx, operation, err, first)
	}
	for _, t := range types {
		name := t.DatabaseTypeName()
		r.columns = append(r.columns, source.Column{Name: r.written(t.Name()), Type: name, Nullable: true, KeyRule: keyRule(name), Encoding: encodingOf(name)})
	}
	if len(r.columns) == 0 {
		return relation{}, fmt.Errorf("describe the query: it returns no columns")
	}
	return r, nil
}

// written is the name of the next column in the query: of two columns named id, SQLite calls the
// second one id:1.
func (r relation) written(name string) string {
	if at := strings.LastIndexByte(name, ':'); at > 0 && slices.ContainsFunc(r.columns, func(c source.Column) bool { return strings.EqualFold(c.Name, name[:at]) }) {
		if _, err := strconv.Atoi(name[at+1:]); err == nil {
			return name[:at]
		}
	}
	return name
}

// each visits the rows of a small query.
func each(ctx context.Context, db source.Querier, text string, args []any, visit func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	for rows.Next() && err == nil {
		err = visit(rows)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// column returns the values of a small query of one column.
func column[T any](ctx context.Context, db source.Querier, text string, args ...any) (values []T, err error) {
	err = each(ctx, db, text, args, func(rows *sql.Rows) error {
		var value T
		err := rows.Scan(&value)
		values = append(values, value)
		return err
	})
	return values, err
}
