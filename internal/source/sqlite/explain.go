package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Plan returns how SQLite would run the read of a range. Its planner knows no
// sizes, so a scan counts only where the table itself is large.
func (s *Source) Plan(ctx context.Context, q observer.Query, in observer.Range) (source.Plan, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	p, err := s.session.plan(ctx, q, in)
	if err != nil {
		return source.Plan{}, err
	}
	var shown source.Plan
	var lines []string
	for _, step := range p.steps {
		more, err := s.session.explain(ctx, step)
		if err != nil {
			return source.Plan{}, err
		}
		lines = append(lines, more...)
	}
	shown.Sorts = slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, wholeSort) })
	shown.Text = strings.Join(lines, "\n")
	shown.FullScan, err = s.session.fullScans(ctx, p.table, lines)
	return shown, err
}

// explainSQL precedes a statement.
const explainSQL = "EXPLAIN QUERY PLAN "

// explain returns the lines of the plan of a statement.
func (s session) explain(ctx context.Context, step step) (lines []string, err error) {
	err = each(ctx, s.db, explainSQL+step.sql, step.args, func(rows *sql.Rows) error {
		var id, parent, unused int
		var detail string
		err := rows.Scan(&id, &parent, &unused, &detail)
		lines = append(lines, detail)
		return err
	})
	return lines, s.translate(ctx, "explain the query", err)
}

// wholeSort ends the line of a plan that sorts the whole result.
const wholeSort = "TEMP B-TREE FOR ORDER BY"

// fullScans finds the large tables among those that are scanned, with or
// without the help of an index that serves the order alone.
func (s session) fullScans(ctx context.Context, table string, lines []string) ([]string, error) {
	var found []string
	for _, line := range lines {
		name, ok := strings.CutPrefix(line, "SCAN ")
		if name, _, _ = strings.Cut(name, " "); !ok || name == "" {
			continue
		}
		if name == "q" { // the alias of what the observer names
			name = table
		}
		// An alias is not a table, and what a view costs to count is unknown.
		tables, err := column[string](ctx, s.db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = $1 COLLATE NOCASE", name)
		if err != nil || len(tables) == 0 {
			continue
		}
		rows, err := column[int64](ctx, s.db, fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d)", source.Quote(tables[0]), source.LargeTable))
		if err == nil && rows[0] == source.LargeTable {
			found = append(found, fmt.Sprintf("%s (%d rows or more)", name, source.LargeTable))
		}
	}
	return found, ctx.Err()
}
