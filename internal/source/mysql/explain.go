package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Plan asks the server how it would run a read.
func (s *Source) Plan(ctx context.Context, q observer.Query, in observer.Range) (source.Plan, error) {
	return inSession(ctx, s, func(c *session) (made source.Plan, err error) {
		p, err := c.plan(ctx, q, in)
		if err != nil {
			return made, err
		}
		for _, step := range p.steps {
			r, err := c.try(ctx, "explain the query", "EXPLAIN FORMAT=TRADITIONAL ", step.sql)
			if err != nil {
				return made, err
			}
			explained(&made, r, p.relation.name)
		}
		return made, nil
	})
}

// explained adds the plan of one statement: a line for each table.
func explained(made *source.Plan, r result, table string) {
	for _, row := range r.rows {
		cells := make(map[string]string, len(row))
		var line []string
		for i, name := range r.columns {
			name = strings.ToLower(name)
			if cells[name] = string(row[i]); cells[name] != "" {
				line = append(line, name+"="+cells[name])
			}
		}
		made.Text += strings.Join(line, " ") + "\n"
		// The table that is read has the alias q; what stands in brackets is
		// the result of another line.
		name := cells["table"]
		if name == "q" && table != "" {
			name = table
		}
		count, err := strconv.ParseInt(cells["rows"], 10, 64)
		whole := cells["type"] == "ALL" || cells["type"] == "index"
		if err == nil && whole && count >= source.LargeTable && !strings.HasPrefix(name, "<") {
			made.FullScan = append(made.FullScan, fmt.Sprintf("%s (about %d rows)", name, count))
		}
		made.Sorts = made.Sorts || strings.Contains(cells["extra"], "filesort") || strings.Contains(cells["extra"], "temporary")
	}
}
