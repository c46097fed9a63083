package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/source"
)

// question is a small statement. One that is only described is not run: its
// answer has the columns that it would return, and no rows.
type question struct {
	sql      string
	params   [][]byte
	describe bool
	// reads says that it evaluates rows of the source.
	reads bool
}

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
	opening := []string{
		"BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY",
		"SET LOCAL statement_timeout = " + milliseconds(o.QueryTimeout),
		"SET LOCAL lock_timeout = " + milliseconds(o.lockWait()),
	}
	p := c.conn.StartPipeline(ctx)
	for _, sql := range opening {
		p.SendQueryParams(sql, nil, nil, nil, nil)
	}
	for _, q := range questions {
		if q.describe {
			p.SendPrepare("", q.sql, nil)
		} else {
			p.SendQueryParams(q.sql, q.params, nil, nil, nil)
		}
	}
	// What fails is skipped up to here, so that the end is always reached.
	p.SendPipelineSync()
	p.SendQueryParams("COMMIT", nil, nil, nil, nil)
	answers, err := answersOf(p)
	if err != nil {
		return nil, c.refusal(ctx, operation, err, questions)
	}
	return answers[len(opening) : len(opening)+len(questions)], nil
}

// refusal words the failure of questions. Only one alone may evaluate rows.
func (c *session) refusal(ctx context.Context, operation string, err error, questions []question) error {
	if q := questions[0]; q.reads {
		return c.overRows(ctx, operation, err, step{q.sql, q.params})
	}
	return c.source.translate(ctx, parsing, operation, err)
}

// answersOf sends what is in the pipeline and reads it to its end.
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
		answers = append(answers, a)
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		var refused *pgconn.PgError
		if !errors.As(err, &refused) {
			break
		}
	}
	if err := p.Close(); first == nil {
		first = err
	}
	return answers, first
}
