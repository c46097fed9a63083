package oracle

import (
	"context"
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// planSQL reads the plan that was explained last: the table shows each session
// no rows but its own, and none that were rolled back.
const planSQL = `SELECT p.DEPTH, p.OPERATION, p.OPTIONS, p.OBJECT_OWNER, p.OBJECT_NAME, p.CARDINALITY
FROM PLAN_TABLE p
WHERE p.STATEMENT_ID = 'observerd'
ORDER BY p.ID`

// Plan returns how the database would run the read of a range. Where it does not
// tell this account, the text says so.
func (s *Source) Plan(ctx context.Context, q observer.Query, in observer.Range) (source.Plan, error) {
	var shown source.Plan
	err := s.session(ctx, func(ctx context.Context, c *session) error {
		p, _, err := c.plan(ctx, q, in)
		if err != nil {
			return err
		}
		for _, step := range p.steps {
			lines, err := c.explain(ctx, p.literals(step))
			if isRefusal(err) {
				shown = source.Plan{Text: "The plan is not shown: " + err.Error()}
				return nil
			}
			if err != nil {
				return err
			}
			if err := c.note(ctx, lines, &shown); err != nil {
				return err
			}
		}
		shown.Text = strings.TrimRight(shown.Text, "\n")
		return nil
	})
	return shown, err
}

// literals puts the bounds into a statement, which is explained without binds.
// They are cursors whose shape was checked.
func (p plan) literals(s step) string {
	text := s.sql
	for n, bind := range s.binds {
		text = strings.Replace(text, p.time.bound(n+1), p.time.value(fmt.Sprintf("'%s'", bind)), 1)
	}
	return text
}

// explain leaves nothing behind: the rows of the plan are rolled back before
// anybody else gets the connection.
func (c *session) explain(ctx context.Context, statement string) ([][]string, error) {
	before := c.unclean
	c.unclean = true
	err := c.exec(ctx, "explain the query", "EXPLAIN PLAN SET STATEMENT_ID = 'observerd' FOR "+statement)
	if err != nil {
		return nil, err
	}
	lines, err := c.rows(ctx, "explain the query", planSQL)
	if err != nil {
		return nil, err
	}
	if err := c.exec(ctx, "end the explanation", "ROLLBACK"); err != nil {
		return nil, err
	}
	c.unclean = before
	return lines, nil
}

// note writes one line a step of the plan and notes what is worth a warning.
func (c *session) note(ctx context.Context, lines [][]string, shown *source.Plan) error {
	for _, line := range lines {
		depth, operation, options, owner, object, rows := line[0], line[1], line[2], line[3], line[4], line[5]
		shown.Text += indent(depth) + operation
		for _, more := range []string{options, object} {
			if more != "" {
				shown.Text += " " + more
			}
		}
		if rows != "" {
			shown.Text += " (about " + rows + " rows)"
		}
		shown.Text += "\n"
		if operation == "SORT" && strings.HasPrefix(options, "ORDER BY") {
			shown.Sorts = true
		}
		if operation != "TABLE ACCESS" || !strings.Contains(options, "FULL") {
			continue
		}
		size, err := c.tableRows(ctx, owner, object)
		if err != nil {
			return err
		}
		if size >= source.LargeTable {
			shown.FullScan = append(shown.FullScan, fmt.Sprintf("%s.%s (about %d rows)", owner, object, size))
		}
	}
	return nil
}

func indent(depth string) string {
	var n int
	if _, err := fmt.Sscan(depth, &n); err != nil || n < 0 {
		return ""
	}
	return strings.Repeat("  ", min(n, 50))
}
