package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// explained is a node of a plan as EXPLAIN (FORMAT JSON) writes it.
type explained struct {
	Kind     string      `json:"Node Type"`
	Relation string      `json:"Relation Name"`
	Schema   string      `json:"Schema"`
	Index    string      `json:"Index Name"`
	Function string      `json:"Function Name"`
	Cost     float64     `json:"Total Cost"`
	Rows     float64     `json:"Plan Rows"`
	Plans    []explained `json:"Plans"`
}

// explainSQL precedes a statement. VERBOSE adds the schemas.
const explainSQL = "EXPLAIN (FORMAT JSON, VERBOSE) "

// tableRowsSQL is what the planner believes; negative before the first ANALYZE.
const tableRowsSQL = `
SELECT greatest(c.reltuples, 0)::bigint
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2`

// Plan returns how the server would run the read of a range.
func (s *Source) Plan(ctx context.Context, q observer.Query, in observer.Range) (source.Plan, error) {
	return inSession(ctx, s, func(c *session) (shown source.Plan, err error) {
		p, err := c.plan(ctx, q, in)
		if err != nil {
			return shown, err
		}
		for _, step := range p.steps {
			rows, err := c.answer(ctx, "explain the query", question{sql: explainSQL + step.plain, params: step.params, runs: step.plain, byPath: true})
			if err != nil {
				return shown, err
			}
			top, err := parsePlan(rows)
			if err == nil {
				err = c.walk(ctx, top, 0, &shown)
			}
			if err != nil {
				return shown, err
			}
		}
		shown.Text = strings.TrimRight(shown.Text, "\n")
		return shown, nil
	})
}

// overRows words the failure of a statement that was planned or run. Both call functions
// over values of rows: the planner asks operators about the most common ones. What the
// server has against the statement itself it says once more where it only analyses it,
// which is before that, and then it may be quoted. Rights are looked at after that: the
// message of the server's own routine for them names an object of the catalogue.
func (c *session) overRows(ctx context.Context, operation string, err error, sql string) error {
	server, is := errors.AsType[*pgconn.PgError](err)
	if !is || classPrefix(server.Code) != "42" || ctx.Err() != nil {
		return c.source.translate(ctx, source.Reading, operation, err)
	}
	refused := serverError(server, source.Reading)
	if c.rollback(ctx) {
		_, again := c.ask(ctx, operation, question{sql: sql, describe: true, byPath: true})
		switch said, is := errors.AsType[*Error](again); {
		case is && said.SQLSTATE == refused.SQLSTATE:
			refused = said
		case again == nil && server.Routine == rightsRoutine && server.Where == "":
			refused = &Error{SQLSTATE: server.Code, text: server.Message}
		case again == nil:
			refused.advice = source.Sound
		}
	}
	return c.source.fault(source.Reading, operation, refused)
}

// rollback ends a transaction that has failed, if there is one, and reports whether there is
// none any more.
func (c *session) rollback(ctx context.Context) bool {
	switch {
	case c.conn.IsClosed() || c.conn.IsBusy():
		return false
	case c.conn.TxStatus() == noTransaction:
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	_, err := c.conn.Exec(ctx, "ROLLBACK").ReadAll()
	return err == nil
}

func parsePlan(rows [][][]byte) (explained, error) {
	var plans []struct{ Plan explained }
	if len(rows) != 1 || json.Unmarshal(rows[0][0], &plans) != nil || len(plans) != 1 {
		return explained{}, errors.New("explain the query: the plan is in a form that is not understood")
	}
	return plans[0].Plan, nil
}

// walk writes one line a node and notes what is worth a warning. It leaves out
// the conditions, which would repeat the statement.
func (c *session) walk(ctx context.Context, n explained, depth int, shown *source.Plan) error {
	shown.Text += strings.Repeat("  ", depth) + n.Kind
	if n.Index != "" {
		shown.Text += " using " + n.Index
	}
	if n.Relation != "" {
		shown.Text += " on " + n.Schema + "." + n.Relation
	}
	shown.Text += fmt.Sprintf(" (cost %.0f, about %.0f rows)\n", n.Cost, n.Rows)
	switch n.Kind {
	case "Sort":
		shown.Sorts = true
	case "Seq Scan":
		if err := c.fullScan(ctx, n, shown); err != nil {
			return err
		}
	}
	for _, child := range n.Plans {
		if err := c.walk(ctx, child, depth+1, shown); err != nil {
			return err
		}
	}
	return nil
}

func (c *session) fullScan(ctx context.Context, n explained, shown *source.Plan) error {
	rows, err := c.rows(ctx, "read the size of a table", tableRowsSQL, n.Schema, n.Relation)
	if err != nil || len(rows) == 0 {
		return err
	}
	if size := count(rows[0][0]); size >= source.LargeTable {
		shown.FullScan = append(shown.FullScan, fmt.Sprintf("%s.%s (about %d rows)", n.Schema, n.Relation, size))
	}
	return nil
}
