package mysql

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

const allSQL = `
SELECT table_name, table_type, table_rows
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type NOT IN ('SEQUENCE', 'SYSTEM VIEW', 'TEMPORARY')
ORDER BY table_name`

// Each of these statements is of one view of the server alone, which it would read anew
// for each row of another. See [session.look].
const (
	timesSQL = `
SELECT table_name, column_name, data_type, is_nullable, COALESCE(column_default, ''), LOWER(extra)
FROM information_schema.columns
WHERE table_schema %s AND table_name %s AND privileges LIKE '%%select%%'
ORDER BY table_name, ordinal_position`

	// Triggers are shown to accounts that may make some.
	triggersSQL = `
SELECT event_object_table, LOWER(action_statement)
FROM information_schema.triggers
WHERE event_object_schema %s AND event_object_table %s AND action_timing = 'BEFORE'`
)

// look looks something up of one table, or of all in the session's database where r is
// none. The server opens all tables unless a statement names one.
func (c *session) look(ctx context.Context, operation, sql string, r relation) (result, error) {
	if r.table == "" {
		return c.query(ctx, operation, fmt.Sprintf(sql, "= DATABASE()", "<> ''"))
	}
	return c.query(ctx, operation, fmt.Sprintf(sql, "= ?", "= ?"), r.schema, r.table)
}

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
	all, err := c.rows(ctx, operation, allSQL)
	if err != nil {
		return nil, err
	}
	found, err := c.look(ctx, operation, indexesSQL, relation{})
	if err != nil {
		return nil, err
	}
	indexes := indexesOf(found)
	tables, places := make([]source.Table, len(all)), make(map[string]*source.Table)
	for i, row := range all {
		t := source.Table{Name: string(row[0]), View: strings.Contains(string(row[1]), "VIEW"), Rows: -1}
		if n, err := strconv.ParseInt(string(row[2]), 10, 64); err == nil && !t.View { // NULL has none.
			t.Rows, t.Analyzed = n, n > 0 // 0 of a table without statistics.
		}
		t.Key = primaryKey(indexes[t.Name])
		tables[i] = t
		places[t.Name] = &tables[i]
	}
	readable, err := c.times(ctx, relation{}, places, indexes)
	tables = slices.DeleteFunc(tables, func(t source.Table) bool { return !readable[t.Name] })
	return tables[:min(len(tables), limit)], err
}

// Sample implements [source.Database]. It reads seconds since 1970, NULL for the date zero.
func (s *Source) Sample(ctx context.Context, t *source.Table) error {
	rows, err := inSession(ctx, s, func(c *session) ([][][]byte, error) {
		r, err := c.describe(ctx, observer.Query{Table: t.FullName()})
		if err != nil {
			return nil, err
		}
		items, order := t.SampleItems(quote, func(name string) string { return "TIMESTAMPDIFF(SECOND, '1970-01-01', " + name + ")" })
		found, err := c.try(ctx, "sample the times", "", fmt.Sprintf("SELECT %s FROM %s AS q FORCE INDEX FOR ORDER BY (PRIMARY) ORDER BY %s LIMIT %d",
			items, r.from, order, source.SampledRows))
		return found.rows, err
	})
	if err == nil {
		source.AddSample(t, rows, source.ReadSeconds)
	}
	return err
}

// times adds the times of a table, or of all, to the tables of those names. It returns
// which of them have a column that may be read.
func (c *session) times(ctx context.Context, r relation, tables map[string]*source.Table, indexes map[string][]index) (readable map[string]bool, err error) {
	const operation = "look what keeps the times"
	columns, err := c.look(ctx, operation, timesSQL, r)
	if err != nil {
		return nil, err
	}
	triggers, err := c.look(ctx, operation, triggersSQL, r)
	if err != nil {
		return nil, err
	}
	readable = make(map[string]bool)
	for _, row := range columns.rows {
		table := string(row[0])
		readable[table] = true
		column := source.TimeColumn{Name: string(row[1]), Type: string(row[2]), Nullable: string(row[3]) != "NO"}
		switch kindOf(column.Type) {
		case kindTimestamp, kindDatetime, kindDate:
		default:
			continue
		}
		column.Date = kindOf(column.Type) == kindDate
		column.SetDefault(string(row[4]))
		column.OnUpdate = source.YesIf(strings.Contains(string(row[5]), "on update"))
		column.Indexed = source.YesIf(slices.ContainsFunc(indexes[table], func(i index) bool { return i.ordered && i.columns[0] == column.Name }))
		column.Trigger = source.Unknown
		if slices.ContainsFunc(triggers.rows, func(t [][]byte) bool {
			return string(t[0]) == table && strings.Contains(string(t[1]), strings.ToLower(column.Name))
		}) {
			column.Trigger = source.Yes
		}
		if t := tables[table]; t != nil {
			t.Add(column)
		}
	}
	return readable, nil
}
