package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// visibleSQL lists what is found without its schema, by the path of the reader's role.
const visibleSQL = `
SELECT c.oid
FROM pg_catalog.pg_class c
WHERE c.relkind OPERATOR(pg_catalog.=) ` + kinds + ` AND pg_catalog.pg_table_is_visible(c.oid)`

// allSQL lists what can be read. Partitions are read as a part of their table. What was
// never analyzed is estimated by its size, with rows of so many bytes as few tables
// have less.
const allSQL = `
SELECT c.oid, n.nspname, c.relname, c.relkind IN ('v', 'm'), CASE WHEN c.relkind IN ('v', 'f') THEN -1 ELSE size.tuples END, coalesce(size.analyzed, false)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
  WITH RECURSIVE parts AS (
    SELECT c.oid AS oid
    UNION ALL
    SELECT h.inhrelid FROM parts p JOIN pg_inherits h ON h.inhparent = p.oid)
  SELECT coalesce(sum(CASE WHEN r.reltuples > 0 THEN r.reltuples::float8 ELSE pg_relation_size(r.oid)::float8 / 64 END), 0)::int8,
         bool_and(r.reltuples > 0 OR pg_relation_size(r.oid) = 0)
  FROM parts p JOIN pg_class r ON r.oid = p.oid
  WHERE r.relkind IN ('r', 'm')) AS size(tuples, analyzed)
WHERE c.relkind = ` + kinds + ` AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND n.nspname !~~ 'pg\_%'
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname
LIMIT $1::int8`

// The look at a catalogue is of one table, or of all where its number is empty. A trigger
// names a column in its function or in its arguments. A default is printed without its
// table, which is not locked so; a generated column, which came with PostgreSQL 12, would
// need it.
const (
	timesSQL = `
SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, a.atttypid = 'date'::regtype,
       CASE WHEN NOT a.atthasdef THEN ''
            WHEN coalesce(to_jsonb(a) ->> 'attgenerated', '') <> '' THEN 'generated'
            ELSE (SELECT pg_get_expr(d.adbin, 0) FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum) END,
       EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
               WHERE t.tgrelid = a.attrelid AND NOT t.tgisinternal
                 AND (strpos(lower(p.prosrc), lower(a.attname)) > 0 OR strpos(encode(t.tgargs, 'escape'), a.attname) > 0)),
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] = a.attnum)
FROM pg_attribute a
WHERE ($1 = '' OR a.attrelid = nullif($1, '')::oid) AND a.attnum > 0 AND NOT a.attisdropped
  AND a.atttypid IN ('date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype)
ORDER BY a.attrelid, a.attnum`

	// A primary key that is not valid is missing in partitions. That of a table from which
	// others inherit does not hold for their rows, which a read of it returns as well.
	primaryKeysSQL = `
SELECT i.indrelid, a.attname
FROM pg_index i
CROSS JOIN LATERAL generate_series(1, i.indnkeyatts) AS k(n)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.n - 1]
WHERE ($1 = '' OR i.indrelid = nullif($1, '')::oid) AND i.indisprimary AND i.indisvalid
  AND NOT EXISTS (SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhparent WHERE h.inhparent = i.indrelid AND c.relkind = 'r')
ORDER BY i.indrelid, k.n`
)

// Tables implements [source.Database].
func (s *Source) Tables(ctx context.Context, limit int) ([]source.Table, error) {
	return inSession(ctx, s, func(c *session) ([]source.Table, error) { return c.tables(ctx, limit) })
}

// PrimaryKey implements [observer.Source].
func (s *Source) PrimaryKey(ctx context.Context, q observer.Query) ([]string, error) {
	return inSession(ctx, s, func(c *session) ([]string, error) {
		r, err := c.describe(ctx, q)
		if err != nil {
			return nil, err
		}
		return c.primaryKey(ctx, r)
	})
}

func (c *session) tables(ctx context.Context, limit int) ([]source.Table, error) {
	const operation = "list tables"
	visible, err := c.rowsByPath(ctx, operation, visibleSQL)
	if err != nil {
		return nil, err
	}
	bare := fn.Set(fn.Each(visible, func(row [][]byte) string { return string(row[0]) }))
	all, err := c.rows(ctx, operation, allSQL, strconv.Itoa(limit))
	if err != nil {
		return nil, err
	}
	keys, err := c.primaryKeys(ctx, "")
	if err != nil {
		return nil, err
	}
	tables := make([]source.Table, len(all))
	places := make(map[string]*source.Table)
	for i, row := range all {
		oid := string(row[0])
		tables[i] = source.Table{
			Schema:   string(row[1]),
			Name:     string(row[2]),
			View:     yes(row[3]),
			Key:      keys[oid],
			Analyzed: yes(row[5]),
		}
		places[oid] = &tables[i]
		if bare[oid] {
			tables[i].Schema = ""
		}
		if tables[i].Rows, err = strconv.ParseInt(string(row[4]), 10, 64); err != nil {
			return nil, err
		}
	}
	return tables, c.times(ctx, "", places)
}

// Sample implements [source.Database]. It reads seconds since 1970, NULL for a time that is
// infinite.
func (s *Source) Sample(ctx context.Context, t *source.Table) error {
	rows, err := inSession(ctx, s, func(c *session) ([][][]byte, error) {
		r, err := c.describe(ctx, observer.Query{Table: t.FullName()})
		if err != nil {
			return nil, err
		}
		items, order := t.SampleItems(source.Quote, func(name string) string {
			return "CASE WHEN isfinite(" + name + ") THEN floor(extract(epoch FROM " + name + "))::int8 END"
		})
		text := fmt.Sprintf("SELECT %s FROM %s AS q ORDER BY %s LIMIT %d", items, r.from, order, source.SampledRows)
		return c.answer(ctx, "sample the times", question{sql: text, runs: text})
	})
	if err == nil {
		source.AddSample(t, rows, source.ReadSeconds)
	}
	return err
}

// times adds the times of a table, or of all, to the tables of those numbers.
func (c *session) times(ctx context.Context, oid string, tables map[string]*source.Table) error {
	rows, err := c.rows(ctx, "look what keeps the times", timesSQL, oid)
	for _, row := range rows {
		if t := tables[string(row[0])]; t != nil {
			column := source.TimeColumn{
				Name:     string(row[1]),
				Type:     string(row[2]),
				Nullable: yes(row[3]),
				Date:     yes(row[4]),
				OnUpdate: source.No,
				Trigger:  source.YesIf(yes(row[6])),
				Indexed:  source.YesIf(yes(row[7])),
			}
			column.SetDefault(string(row[5]))
			t.Add(column)
		}
	}
	return err
}

// primaryKeys returns the columns of that of a table, or of each, by the table's number.
func (c *session) primaryKeys(ctx context.Context, oid string) (map[string][]string, error) {
	rows, err := c.rows(ctx, "read the primary key", primaryKeysSQL, oid)
	return fn.Group(rows, func(row [][]byte) (table, column string) { return string(row[0]), string(row[1]) }), err
}
