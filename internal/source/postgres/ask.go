package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// question is a small statement. One that is only described is not run: its
// answer has the columns that it would return, and no rows.
type question struct {
	sql      string
	params   [][]byte
	describe bool
	// runs is the statement of an observer in it that the server plans or runs: it may call
	// functions over values of rows then, see overRows. Empty for none.
	runs string
	// byPath says that names are found by the search_path of the reader's role, see
	// pinSQL. Such questions come before all others.
	byPath bool
	// fixed says that the text is the same in each poll: a session prepares it, so that the
	// server plans it once. See withPrepared.
	fixed bool
	// name is that of a prepared statement: one that is to be prepared, where describe is
	// set, or to be run; empty for none.
	name string
	// silent says that nobody waits for the answer.
	silent bool
}

// pinSQL lets the rest of a transaction find nothing but what is the server's own.
// In a schema of the reader's path, others may be able to create an operator or
// function that fits an argument better than the server's, as =(varchar, varchar)
// does, and it would run with the rights of the reader. What depends on the path
// of the reader, such as the queries of the configuration, cannot be pinned:
// there, what a statement of ours adds is qualified, operators too.
const pinSQL = "SET LOCAL search_path = pg_catalog, pg_temp"

type answer struct {
	fields []pgconn.FieldDescription // of a question that was only described
	rows   [][][]byte                // NULL is nil
}

// ask runs small statements in a read-only transaction of their own, and takes
// one round trip for all of it. It returns an answer for each, or the first
// failure. What bounds them is set within the transaction: a pooler may refuse
// such settings at the start of a session, and one that shares the session
// would have them meet others, too.
func (c *session) ask(ctx context.Context, operation string, questions ...question) ([]answer, error) {
	o := c.source.options
	ctx, cancel := context.WithTimeoutCause(ctx, o.QueryTimeout, source.ErrTimeout)
	defer cancel()
	opening := []string{"BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY"}
	if !c.kept.settled {
		opening = append(opening, local(append([]setting{
			{"statement_timeout", milliseconds(o.QueryTimeout)},
			{"lock_timeout", milliseconds(lockWait(o))},
		}, c.names()...)...)...)
	}
	runs := slices.IndexFunc(questions, func(q question) bool { return q.runs != "" }) // One at most.
	if runs >= 0 {
		c.kept.settled = false // What it calls may set anything.
	}
	for {
		all := c.withPrepared(questions)
		if at := slices.IndexFunc(all, func(q question) bool { return !q.byPath }); at >= 0 {
			all = slices.Insert(all, at, question{sql: pinSQL, silent: true})
		}
		answers, err := c.send(ctx, opening, all, "COMMIT")
		if c.notePrepared(all, err) {
			continue
		}
		switch {
		case err != nil && runs >= 0:
			return nil, c.overRows(ctx, operation, err, questions[runs].runs)
		case err != nil:
			return nil, c.source.translate(ctx, source.Parsing, operation, err)
		}
		asked := make([]answer, 0, len(questions))
		for i, q := range all {
			if !q.silent {
				asked = append(asked, answers[i])
			}
		}
		return asked, nil
	}
}

// openings is how often an opening is sent. Until it has set ours, the statement_timeout of
// the role counts, and a busy server does not always come so far within a millisecond.
const openings = 5

// send begins a transaction and runs questions in it, in one round trip. Each statement
// is timed by itself. The closing statements run also after what fails. It returns the
// answers to all but the opening.
func (c *session) send(ctx context.Context, opening []string, questions []question, closing ...string) ([]answer, error) {
	for tries := 1; ; tries++ {
		p := c.conn.StartPipeline(ctx)
		for _, sql := range opening {
			p.SendQueryParams(sql, nil, nil, nil, nil)
		}
		for _, q := range questions {
			switch {
			case q.describe:
				p.SendPrepare(q.name, q.sql, nil)
			case q.name != "":
				p.SendQueryPrepared(q.name, q.params, nil, nil)
			default:
				p.SendQueryParams(q.sql, q.params, nil, nil, nil)
			}
		}
		for _, sql := range closing {
			// What fails is skipped up to here, so that the end is always reached.
			p.SendPipelineSync()
			p.SendQueryParams(sql, nil, nil, nil, nil)
		}
		answers, err := answersOf(p)
		if err == nil {
			return answers[len(opening):], nil
		}
		refused, ok := errors.AsType[*pgconn.PgError](err)
		if ok && len(answers) < len(opening) && refused.Code == wrongValue {
			return nil, &observer.Fault{Class: observer.ClassSettings, Code: wrongValue, Err: &Error{
				SQLSTATE: wrongValue, text: refused.Message, advice: "it is said in the URL, for " + opening[len(answers)],
			}}
		}
		// Those are BEGIN, and what sets ours.
		stopped := ok && !c.kept.settled && len(answers) < 2 && refused.Code == queryCanceled && ctx.Err() == nil
		if !stopped || tries == openings || !c.rollback(ctx) {
			return nil, err
		}
	}
}

// answersOf sends what is in the pipeline and reads it to its end. Of a pipeline that
// fails it returns the answers up to the failure.
func answersOf(p *pgconn.Pipeline) ([]answer, error) {
	var answers []answer
	first := p.Sync()
	for {
		result, err := p.GetResults()
		if result == nil && err == nil {
			break
		}
		var a answer
		switch r := result.(type) {
		case *pgconn.PipelineSync:
			continue
		case *pgconn.StatementDescription:
			a.fields = r.Fields
		case *pgconn.ResultReader:
			read := r.Read()
			a.rows, err = read.Rows, read.Err
		}
		if err == nil {
			if first == nil {
				answers = append(answers, a)
			}
			continue
		}
		if first == nil {
			first = err
		}
		if _, refused := errors.AsType[*pgconn.PgError](err); !refused {
			break
		}
	}
	if err := p.Close(); first == nil {
		first = err
	}
	return answers, first
}
