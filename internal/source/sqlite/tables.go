package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// A virtual table needs a module that may not be here.
const allSQL = `
SELECT name, type = 'view'
FROM sqlite_schema
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
  AND upper(sql) NOT LIKE 'CREATE VIRTUAL %'
ORDER BY name
LIMIT $1`

const columnsSQL = `
SELECT c.name, c.type, c.pk, NOT (c."notnull" OR c.pk = 1 AND upper(c.type) = 'INTEGER'),
       coalesce(c.dflt_value, ''),
       EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = $1 COLLATE NOCASE AND instr(lower(sql), lower(c.name))),
       EXISTS (SELECT 1 FROM pragma_index_list($1) AS i JOIN pragma_index_info(i.name) AS x WHERE NOT i.partial AND x.seqno = 0 AND x.name = c.name)
FROM pragma_table_xinfo($1) AS c
WHERE c.hidden <> 1
ORDER BY c.cid`

// Tables implements [source.Database].
func (s *Source) Tables(ctx context.Context, limit int) ([]source.Table, error) {
	tables, err := s.listTables(ctx, limit)
	if err != nil {
		return nil, err
	}
	whole := tables[:0]
	for _, t := range tables {
		switch err := s.fillTable(ctx, &t); {
		case t.View && observer.ClassOf(err) == observer.ClassQuery: // What it reads is gone.
		case err != nil:
			return nil, err
		default:
			whole = append(whole, t)
		}
	}
	return whole, nil
}

// PrimaryKey implements [observer.Source].
func (s *Source) PrimaryKey(ctx context.Context, q observer.Query) ([]string, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	r, err := s.session.describe(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.session.primaryKey(ctx, r)
}

func (s *Source) listTables(ctx context.Context, limit int) (tables []source.Table, err error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	err = each(ctx, s.db, allSQL, []any{limit}, func(rows *sql.Rows) error {
		t := source.Table{Rows: -1}
		err := rows.Scan(&t.Name, &t.View)
		tables = append(tables, t)
		return err
	})
	return tables, s.session.translate(ctx, "list tables", err)
}

// fillTable reads the columns of a table, and counts its rows.
func (s *Source) fillTable(ctx context.Context, t *source.Table) error {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	if err := s.session.look(ctx, t, ""); err != nil || t.View {
		return err
	}
	text := fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d)", source.Quote(t.Name), source.ManyRows)
	count, err := column[int64](ctx, s.db, text)
	if err != nil {
		return s.session.translate(ctx, "count rows", err)
	}
	t.Rows, t.Counted = count[0], true
	return nil
}

// Sample implements [source.Database]. It reads values as they are stored: the driver makes
// no time of an expression.
func (s *Source) Sample(ctx context.Context, t *source.Table) error {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	items, order := t.SampleItems(source.Quote, func(name string) string { return "+" + name })
	text := fmt.Sprintf("SELECT %s FROM %s AS q ORDER BY %s LIMIT %d", items, source.Quote(t.Name), order, source.SampledRows)
	var all [][]any
	err := each(ctx, s.db, text, nil, func(rows *sql.Rows) error {
		row, targets := make([]any, len(t.Times)+1), make([]any, len(t.Times)+1)
		for n := range row {
			targets[n] = &row[n]
		}
		all = append(all, row)
		return rows.Scan(targets...)
	})
	if err != nil {
		return s.session.overRows(ctx, "sample the times", err, step{sql: text})
	}
	source.AddSample(t, all, func(value any) time.Time {
		_, at, ok := parseValue(value, s.options.Location)
		if !ok {
			return time.Time{}
		}
		return at
	})
	return nil
}

// look looks up the primary key of a table, and the columns that may hold timestamps: the
// named one, which is one, and by its type or, as any type may hold some, by its name each other.
func (s session) look(ctx context.Context, t *source.Table, timestamp string) error {
	key := make(map[int]string)
	err := each(ctx, s.db, columnsSQL, []any{t.Name}, func(rows *sql.Rows) error {
		var c source.TimeColumn
		var place int
		var preset string
		var trigger, indexed bool
		if err := rows.Scan(&c.Name, &c.Type, &place, &c.Nullable, &preset, &trigger, &indexed); err != nil {
			return err
		}
		if place > 0 {
			key[place] = c.Name
		}
		c.Date = strings.EqualFold(c.Type, "DATE")
		c.SetDefault(preset)
		c.Trigger, c.Indexed, c.OnUpdate = source.YesIf(trigger), source.YesIf(indexed), source.No
		if c.Name == timestamp || isTime(c) {
			t.Add(c)
		}
		return nil
	})
	for place := 1; place <= len(key); place++ {
		t.Key = append(t.Key, key[place])
	}
	return s.translate(ctx, "read columns", err)
}

// isTime reports whether a column may hold timestamps: by its type, or, as any type may
// do so, by its name.
func isTime(c source.TimeColumn) bool {
	declared := strings.ToUpper(c.Type)
	return strings.Contains(declared, "DATE") || strings.Contains(declared, "TIMESTAMP") ||
		!strings.Contains(declared, "BOOL") && source.MeaningOf(c.Name) > source.Unsaid
}
