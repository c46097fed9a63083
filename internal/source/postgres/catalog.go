package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// relation is what a query reads, as the catalogue knows it.
type relation struct {
	oid string // of a table or view; empty for a query
	// tables are the numbers of the table or view, or of those whose columns a query
	// returns.
	tables []string
	kind   byte // as pg_class.relkind has it; 0 for a query
	// readable says that we may read all of its columns, and so may lock it.
	readable bool
	// policies says that row security is on: policies may read other tables.
	policies bool
	// parent says that tables inherit from it, whose rows it shows as well.
	parent     bool
	replicated bool // see replicatedSQL
	// transparent says that the stamp of a view or a parent says all of what it reads; see hiddenSQL.
	transparent bool
	name        string // quoted, for messages; empty for a query
	from        string // what follows FROM
	columns     []source.Column
	types       []uint32 // of the columns, domains resolved
	sizes       map[string]size
	collations  map[string]string
	stamp       string   // see lookSQL; empty for unknown
	oneWay      []string // columns whose text the server does not read back, see readsBack
}

// Kinds of relations.
const (
	view         = 'v'
	foreignTable = 'f'
	materialized = 'm'
)

// kinds are the relations that can be read: tables, partitioned and foreign
// ones too, views, materialized views.
const kinds = `ANY ('{r,p,f,v,m}')`

// replicatedSQL reports whether logical replication writes the rows of the relation
// c, or those of what it is a partition of. It needs no right.
const replicatedSQL = `c.oid OPERATOR(pg_catalog.=) ANY (
         WITH RECURSIVE replicated AS (
           SELECT s.srrelid AS oid FROM pg_catalog.pg_subscription_rel s
           UNION
           SELECT i.inhrelid FROM replicated r JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) r.oid)
         SELECT r.oid FROM replicated r)`

// Names without a schema are looked up by the path of the reader, and types are
// named as it has them. So all that these statements use is qualified: an IN or a
// CASE with a value would look up its operator.

const tableSQL = `
SELECT c.oid, n.nspname, c.relname, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,
       COALESCE(base.oid, t.oid), c.relkind, pg_catalog.has_table_privilege(c.oid, 'SELECT'), c.relrowsecurity, c.relhassubclass, ` + replicatedSQL + `,
       a.attcollation, a.attlen, a.atttypmod, COALESCE(base.typtype, t.typtype)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) a.atttypid
LEFT JOIN LATERAL (
  WITH RECURSIVE base AS (
    SELECT t.typbasetype AS oid
    UNION ALL
    SELECT b.typbasetype
    FROM base JOIN pg_catalog.pg_type b ON b.oid OPERATOR(pg_catalog.=) base.oid AND b.typtype OPERATOR(pg_catalog.=) 'd')
  SELECT b.oid, b.typtype
  FROM base JOIN pg_catalog.pg_type b ON b.oid OPERATOR(pg_catalog.=) base.oid AND b.typtype OPERATOR(pg_catalog.<>) 'd'
) AS base ON t.typtype OPERATOR(pg_catalog.=) 'd'
WHERE c.relkind OPERATOR(pg_catalog.=) ` + kinds + ` AND %s
ORDER BY c.oid, a.attnum`

const (
	exactName = `c.relname OPERATOR(pg_catalog.=) $1
  AND (n.nspname OPERATOR(pg_catalog.=) $2 OR $2 OPERATOR(pg_catalog.=) '' AND pg_catalog.pg_table_is_visible(c.oid))`
	// The path does not matter for system tables, which are not meant here.
	foldedName = `pg_catalog.lower(c.relname) OPERATOR(pg_catalog.=) pg_catalog.lower($1)
  AND (pg_catalog.lower(n.nspname) OPERATOR(pg_catalog.=) pg_catalog.lower($2)
       OR $2 OPERATOR(pg_catalog.=) '' AND pg_catalog.pg_table_is_visible(c.oid))`
)

const namesSQL = `
SELECT CASE WHEN $1 OPERATOR(pg_catalog.<>) '' THEN n.nspname OPERATOR(pg_catalog.||) '.' ELSE '' END OPERATOR(pg_catalog.||) c.relname
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relkind OPERATOR(pg_catalog.=) ` + kinds + `
  AND n.nspname OPERATOR(pg_catalog.<>) ALL ('{pg_catalog,information_schema}')
  AND n.nspname OPERATOR(pg_catalog.!~~) 'pg\_toast%'
  AND ($1 OPERATOR(pg_catalog.<>) '' OR pg_catalog.pg_table_is_visible(c.oid))
ORDER BY 1
LIMIT 5000`

func (c *session) describe(ctx context.Context, q observer.Query) (relation, error) {
	if err := source.CheckQuery(q); err != nil {
		return relation{}, source.Unfit(err)
	}
	if q.Table == "" {
		return c.describeQuery(ctx, q)
	}
	t := parseTable(q.Table)
	for _, match := range []string{exactName, foldedName} {
		rows, err := c.answer(ctx, "look up the table", question{sql: fmt.Sprintf(tableSQL, match), params: paramsOf([]string{t.name, t.schema}), byPath: true, fixed: true})
		if err != nil {
			return relation{}, err
		}
		if r, ok := oneRelation(rows); ok {
			return r, nil
		}
	}
	return relation{}, c.missingTable(ctx, q.Table, t.schema)
}

// oneRelation reads the rows of one relation; it refuses to choose among more.
func oneRelation(rows [][][]byte) (relation, bool) {
	if len(rows) == 0 {
		return relation{}, false
	}
	first := rows[0]
	r := relation{
		oid: string(first[0]), tables: []string{string(first[0])}, kind: first[7][0], readable: yes(first[8]), policies: yes(first[9]), parent: yes(first[10]),
		replicated: yes(first[11]), sizes: make(map[string]size), collations: make(map[string]string),
	}
	r.from = source.Quote(string(first[1])) + "." + source.Quote(string(first[2]))
	r.name = string(first[1]) + "." + string(first[2])
	for _, row := range rows {
		if string(row[0]) != r.oid {
			return relation{}, false
		}
		oid, modifier := parseOID(row[6]), int(count(row[14]))
		column := source.Column{Name: string(row[3]), Type: string(row[4]), Nullable: !yes(row[5])}
		r.add(column, oid, modifier, string(row[15]) == composite)
		if r.kind == foreignTable { // Its rows are another server's.
			modifier = -1
		}
		r.sizes[column.Name] = sizeOf(oid, int(count(row[13])), modifier)
		r.collations[column.Name] = string(row[12])
	}
	return r, true
}

// add adds a column with what its type says of it.
func (r *relation) add(column source.Column, oid uint32, modifier int, isComposite bool) {
	column.KeyRule, column.KeyWidth = keyRule(oid, modifier)
	column.Encoding = encodings[kindOf(oid)]
	r.columns = append(r.columns, column)
	r.types = append(r.types, oid)
	if isComposite || !readsBack(oid) {
		r.oneWay = append(r.oneWay, column.Name)
	}
}

// tableList are the numbers of tables as an array.
func (r relation) tableList() string { return "{" + strings.Join(r.tables, ",") + "}" }

// indexed reports whether it is of a kind that can have indexes.
func (r relation) indexed() bool { return r.kind == 'r' || r.kind == 'p' || r.kind == materialized }

// inherited reports whether it is a table that shows the rows of others as well, of which
// its indexes have none.
func (r relation) inherited() bool { return r.kind == 'r' && r.parent }

func yes(text []byte) bool { return string(text) == "t" }

func parseOID(text []byte) uint32 {
	oid, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil {
		return 0 // An unknown type, whose values become strings.
	}
	return uint32(oid)
}

func (c *session) missingTable(ctx context.Context, table, schema string) error {
	rows, err := c.rowsByPath(ctx, "list tables", namesSQL, schema)
	if err != nil {
		return err
	}
	return source.MissingTable(table, fn.Each(rows, func(row [][]byte) string { return string(row[0]) }), false)
}

// typeNames are the server's own types; those of extensions and users have no
// fixed number.
var typeNames = pgtype.NewMap()

func typeName(oid uint32) string {
	if t, ok := typeNames.TypeForOID(oid); ok {
		return t.Name
	}
	return "type " + strconv.FormatUint(uint64(oid), 10)
}

// describeQuery lets the server parse the query and say what it would return.
// It cannot say what may be NULL, as an outer join makes anything so.
func (c *session) describeQuery(ctx context.Context, q observer.Query) (relation, error) {
	r := relation{from: source.Subquery(q.SQL), sizes: make(map[string]size)}
	d, err := c.ask(ctx, "describe the query", question{sql: "SELECT * FROM " + r.from + " AS q", describe: true, byPath: true})
	if err != nil {
		return relation{}, err
	}
	for _, f := range d[0].fields {
		if f.TableOID != 0 {
			r.tables = append(r.tables, strconv.FormatUint(uint64(f.TableOID), 10))
		}
		r.sizes[f.Name] = sizeOf(f.DataTypeOID, int(f.DataTypeSize), int(f.TypeModifier))
		isComposite := false
		if _, known := typeNames.TypeForOID(f.DataTypeOID); !known && slices.Contains(q.Key, f.Name) {
			rows, err := c.rows(ctx, "look up a type", isCompositeSQL, strconv.FormatUint(uint64(f.DataTypeOID), 10))
			if err != nil {
				return relation{}, err
			}
			isComposite = len(rows) > 0
		}
		r.add(source.Column{Name: f.Name, Type: typeName(f.DataTypeOID), Nullable: true}, f.DataTypeOID, int(f.TypeModifier), isComposite)
	}
	return r, nil
}

const isCompositeSQL = "SELECT 1 FROM pg_type WHERE oid = $1::oid AND typtype = '" + composite + "'"
