package oracle

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
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
	return inSession(ctx, s, func(c *session) (shown source.Plan, err error) {
		p, err := c.plan(ctx, q, in)
		if err != nil {
			return shown, err
		}
		for _, step := range p.steps {
			lines, err := c.explain(ctx, cmp.Or(step.explained, step.sql))
			if refused(err) {
				return source.Plan{Text: "The plan is not shown: " + err.Error()}, nil
			}
			if err == nil {
				err = c.addPlan(ctx, lines, &shown)
			}
			if err != nil {
				return shown, err
			}
			// One whose name tells it, Describe has warned of.
			if !p.relation.others.remote && !p.relation.others.materialized && p.selection.Timestamp >= 0 && q.Overlap <= 0 && len(shown.Warnings) == 0 {
				shown.Warnings = planned(lines).warnings()
			}
		}
		shown.Text = strings.TrimRight(shown.Text, "\n")
		return shown, nil
	})
}

// explain leaves nothing behind: the rows of the plan are rolled back before
// the connection is used again.
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

// planned says what views and queries read of others, as far as the plan shows it.
// That is enough for a warning, and not for the horizon.
func planned(lines [][]string) (o others) {
	for _, line := range lines {
		operation, options := line[1], line[2]
		o.remote = o.remote || operation == "REMOTE" || options == "REMOTE"
		o.materialized = o.materialized || strings.HasPrefix(operation, "MAT_VIEW")
	}
	return o
}

// warnings says what the overlap has to be longer than.
func (o others) warnings() []string {
	var w []string
	if o.remote {
		w = append(w, "Rows come over a database link, and the transactions of the other database cannot be seen here: use overlap, longer than those.")
	}
	if o.materialized {
		w = append(w, "Rows come from a materialized view, which shows them when it is refreshed: use overlap, longer than the time between two refreshes.")
	}
	if o.unknown {
		w = append(w, "What a view or query reads is not looked up, so the horizon is the clock less the overlap. Write overlap: "+
			"longer than the transactions of the other database for rows over a database link, than the time between two refreshes for those of a materialized view; "+
			"5s is enough for tables of this database whose open transactions are seen.")
	}
	return w
}

// addPlan writes one line a step of the plan and adds what is worth a warning.
func (c *session) addPlan(ctx context.Context, lines [][]string, shown *source.Plan) error {
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
	n, _ := strconv.Atoi(depth) // The least for what is no number.
	return strings.Repeat("  ", min(max(n, 0), 50))
}
