package postgres

import (
	"context"
	"strconv"
	"strings"

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
SELECT c.oid, n.nspname, c.relname, c.relkind IN ('v', 'm'),
       CASE WHEN c.relkind IN ('v', 'f') THEN -1 ELSE (
         WITH RECURSIVE parts AS (
           SELECT c.oid AS oid
           UNION ALL
           SELECT h.inhrelid FROM parts p JOIN pg_inherits h ON h.inhparent = p.oid)
         SELECT coalesce(sum(CASE WHEN r.reltuples > 0 THEN r.reltuples::float8 ELSE pg_relation_size(r.oid)::float8 / 64 END), 0)::int8
         FROM parts p JOIN pg_class r ON r.oid = p.oid
         WHERE r.relkind IN ('r', 'm')) END,
       (SELECT string_agg(a.attname, E'\x01' ORDER BY k.n)
        FROM pg_index i
        CROSS JOIN LATERAL generate_series(1, i.indnkeyatts) AS k(n)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.n - 1]
        WHERE i.indrelid = c.oid AND i.indisprimary)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = ` + kinds + ` AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND n.nspname !~~ 'pg\_%'
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname
LIMIT $1::int8`

// timesSQL lists the times of all tables. A trigger names a column in its function or in
// its arguments.
const timesSQL = `
SELECT c.oid, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, a.atttypid = 'date'::regtype, a.atthasdef,
       EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
               WHERE t.tgrelid = c.oid AND NOT t.tgisinternal
                 AND (strpos(lower(p.prosrc), lower(a.attname)) > 0 OR strpos(encode(t.tgargs, 'escape'), a.attname) > 0)),
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] = a.attnum)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind = ` + kinds + ` AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND n.nspname !~~ 'pg\_%'
  AND a.atttypid IN ('date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype)
ORDER BY c.oid, a.attnum`

// Tables implements [source.Database].
func (s *Source) Tables(ctx context.Context, limit int) (tables []source.Table, err error) {
	err = s.session(ctx, func(ctx context.Context, c *session) (err error) {
		tables, err = c.tables(ctx, limit)
		return err
	})
	return tables, err
}

func (c *session) tables(ctx context.Context, limit int) ([]source.Table, error) {
	const operation = "list tables"
	visible, err := c.rowsByPath(ctx, operation, visibleSQL)
	if err != nil {
		return nil, err
	}
	bare := make(map[string]bool, len(visible))
	for _, row := range visible {
		bare[string(row[0])] = true
	}
	all, err := c.rows(ctx, operation, allSQL, strconv.Itoa(limit))
	if err != nil {
		return nil, err
	}
	times, err := c.rows(ctx, operation, timesSQL)
	if err != nil {
		return nil, err
	}
	of := make(map[string][]source.TimeColumn)
	for _, row := range times {
		of[string(row[0])] = append(of[string(row[0])], source.TimeColumn{
			Name: string(row[1]), Type: string(row[2]), Nullable: yes(row[3]), Date: yes(row[4]),
			Default: source.YesIf(yes(row[5])), OnUpdate: source.No, Trigger: source.YesIf(yes(row[6])), Indexed: source.YesIf(yes(row[7])),
		})
	}
	tables := make([]source.Table, len(all))
	for i, row := range all {
		t := source.Table{Schema: string(row[1]), Name: string(row[2]), View: yes(row[3]), Times: of[string(row[0])]}
		if bare[string(row[0])] {
			t.Schema = ""
		}
		if t.Rows, err = strconv.ParseInt(string(row[4]), 10, 64); err != nil {
			return nil, err
		}
		if row[5] != nil {
			t.Key = strings.Split(string(row[5]), "\x01")
		}
		if t.View {
			source.Unseen(t.Times)
		}
		tables[i] = t
	}
	return tables, nil
}
