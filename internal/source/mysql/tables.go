package mysql

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/source"
)

// Each of these statements is of one view of the server alone, which it would read anew
// for each row of another.
const (
	allSQL = `
SELECT table_name, table_type, table_rows
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type NOT IN ('SEQUENCE', 'SYSTEM VIEW', 'TEMPORARY')
ORDER BY table_name`

	readableSQL = `
SELECT table_name, column_name, data_type, is_nullable, column_default IS NOT NULL AND column_default <> 'NULL', LOWER(extra)
FROM information_schema.columns
WHERE table_schema = DATABASE() AND privileges LIKE '%select%'
ORDER BY table_name, ordinal_position`

	keysSQL = `
SELECT table_name, index_name, seq_in_index, column_name
FROM information_schema.statistics
WHERE table_schema = DATABASE() AND index_type = 'BTREE' AND (index_name = 'PRIMARY' OR seq_in_index = 1)
ORDER BY table_name, index_name, seq_in_index`

	// Triggers are shown to accounts that may make some.
	triggersSQL = `
SELECT event_object_table, LOWER(action_statement)
FROM information_schema.triggers
WHERE event_object_schema = DATABASE() AND action_timing = 'BEFORE'`
)

// Tables implements [source.Database].
func (s *Source) Tables(ctx context.Context, limit int) (tables []source.Table, err error) {
	err = s.session(ctx, func(ctx context.Context, c *session) (err error) {
		tables, err = c.tables(ctx, limit)
		return err
	})
	return tables, err
}

func (c *session) tables(ctx context.Context, limit int) ([]source.Table, error) {
	var answers [4][][][]byte
	for i, sql := range []string{allSQL, readableSQL, keysSQL, triggersSQL} {
		var err error
		if answers[i], err = c.rows(ctx, "list tables", sql); err != nil {
			return nil, err
		}
	}
	keys, indexed := keysOf(answers[2])
	times, readable := timesOf(answers[1], answers[3], indexed)
	var tables []source.Table
	for _, row := range answers[0] {
		t := source.Table{Name: string(row[0]), View: strings.Contains(string(row[1]), "VIEW"), Rows: -1}
		if !readable[t.Name] {
			continue
		}
		if len(tables) == limit {
			break
		}
		if n, err := strconv.ParseInt(string(row[2]), 10, 64); err == nil { // NULL has none.
			t.Rows = n
		}
		t.Key, t.Times = keys[t.Name], times[t.Name]
		if t.View {
			t.Rows = -1
			source.Unseen(t.Times)
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// keysOf returns the primary keys of the tables, and the columns by which an index begins.
func keysOf(rows [][][]byte) (keys, indexed map[string][]string) {
	keys, indexed = make(map[string][]string), make(map[string][]string)
	for _, row := range rows {
		table, column := string(row[0]), string(row[3])
		if string(row[1]) == "PRIMARY" {
			keys[table] = append(keys[table], column)
		}
		if string(row[2]) == "1" {
			indexed[table] = append(indexed[table], column)
		}
	}
	return keys, indexed
}

// timesOf returns the times of the tables, and which of them have a column that may be
// read.
func timesOf(columns, triggers [][][]byte, indexed map[string][]string) (times map[string][]source.TimeColumn, readable map[string]bool) {
	times, readable = make(map[string][]source.TimeColumn), make(map[string]bool)
	for _, row := range columns {
		table := string(row[0])
		readable[table] = true
		c := source.TimeColumn{Name: string(row[1]), Type: string(row[2]), Nullable: string(row[3]) != "NO"}
		switch kindOf(c.Type) {
		case kindTimestamp, kindDatetime, kindDate:
		default:
			continue
		}
		c.Date = kindOf(c.Type) == kindDate
		c.Default, c.OnUpdate = source.YesIf(string(row[4]) == "1"), source.YesIf(strings.Contains(string(row[5]), "on update"))
		c.Indexed, c.Trigger = source.YesIf(slices.Contains(indexed[table], c.Name)), source.Unknown
		if slices.ContainsFunc(triggers, func(t [][]byte) bool {
			return string(t[0]) == table && strings.Contains(string(t[1]), strings.ToLower(c.Name))
		}) {
			c.Trigger = source.Yes
		}
		times[table] = append(times[table], c)
	}
	return times, readable
}
