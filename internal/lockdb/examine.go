package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/status"
)

// ExamineOptions say what is looked at, and for how long.
type ExamineOptions struct {
	// URL is "sqlite:PATH" or "postgres://…". Required.
	URL string
	// Watch is how long INT_LOCK is watched for rows that are written; 0 is
	// one look. Only of a row that was seen to be written can the clock of its
	// writer be told.
	Watch time.Duration
	// Every is the time between two looks. 0 means 200 ms.
	Every time.Duration
}

// Examine looks at a coordination database, as far as there is one, and
// changes nothing: it reads in read-only transactions on connections of its
// own, sets nothing in the session and takes no lock. There is an error where
// nothing can be seen: the database is [Unavailable], there is a [Refusal], or it
// is [ErrNoDatabase]. A part that cannot be looked at, for want of a right for
// example, stands in the result instead.
func Examine(ctx context.Context, o ExamineOptions) (found status.Examination, err error) {
	if o.Every == 0 {
		o.Every = 200 * time.Millisecond
	}
	x, err := newExaminer(o)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, x.pool.Close()) }()
	err = x.run(ctx)
	return *x.found, err
}

// examiner gathers the facts. Its parts run one after the other, and each may
// rely on what those before it have found.
type examiner struct {
	options ExamineOptions
	pool    *sql.DB
	place   *place // nil on SQLite
	d       *dialect
	found   *status.Examination
	// bound limits a transaction of the server; empty: nothing does.
	bound string
	// others looks which nodes are there; kind is the liveness of those that can be
	// told of.
	others func(ctx context.Context) (aliveness, error)
	kind   string
	// finite words a column of instants so that it can always be read.
	finite func(column string) string
	parts  []part
}

// part is one look at the database, under the name that is told when it fails.
type part struct {
	name string
	look func(x *examiner, ctx context.Context) error
}

func newExaminer(o ExamineOptions) (*examiner, error) {
	scheme, _, _ := strings.Cut(o.URL, ":")
	if scheme == "sqlite" {
		return examineSQLite(o)
	}
	return examinePostgres(o)
}

func (x *examiner) run(ctx context.Context) error {
	for _, p := range x.parts {
		err := p.look(x, ctx)
		if unseen := whole(err); unseen != nil {
			return unseen
		}
		if ctx.Err() != nil || Unavailable(err) || NoSession(err) {
			return fmt.Errorf("look at %s: %w", p.name, err)
		}
		if err != nil {
			x.found.Blind = append(x.found.Blind, status.Blind{Part: p.name, Reason: err.Error()})
		}
	}
	return nil
}

// whole returns the error, with what to do about it, where it is not about one
// part: nobody is let in, or the file is no database. It is nil for every other.
func whole(err error) error {
	if refusal := Refusal(err); refusal != "" {
		return fmt.Errorf("the coordination database cannot be examined: %s; fix that there, or correct database.url: %w", refusal, err)
	}
	if errors.Is(err, ErrNoDatabase) || errors.Is(err, ErrPooler) || errors.Is(err, ErrSearchPath) { // They say by themselves what to do.
		return err
	}
	return nil
}

// ourParts follow those that look at the server and at the table.
func ourParts() []part {
	return []part{
		{status.PartRows, (*examiner).watch},
		{status.PartLocks, (*examiner).acquisitions},
		{status.PartNodes, (*examiner).members},
		{status.PartSchedule, (*examiner).turns},
		{status.PartOffsets, (*examiner).fed},
		{status.PartLog, (*examiner).waiting},
		{status.PartTime, (*examiner).time},
	}
}

// inTx runs f in a transaction that cannot write.
func (x *examiner) inTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := x.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	if x.bound != "" {
		_, err = tx.ExecContext(ctx, x.bound)
	}
	if err == nil {
		err = f(tx)
	}
	return errors.Join(err, rollback(tx))
}

// visit visits each row of a result.
func (x *examiner) visit(ctx context.Context, text string, row func(scan func(...any) error) error, args ...any) error {
	return x.inTx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, x.d.sql(text), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := row(rows.Scan); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// rows is visit for a query without parameters.
func (x *examiner) rows(ctx context.Context, text string, row func(scan func(...any) error) error) error {
	return x.visit(ctx, text, row)
}

// one reads the only row of a result.
func (x *examiner) one(ctx context.Context, text string, into ...any) error {
	return x.inTx(ctx, func(tx *sql.Tx) error { return tx.QueryRowContext(ctx, x.d.sql(text)).Scan(into...) })
}

// looks is how often the clock is read: the fastest answer says most.
const looks = 9

// clock compares the clock of this host with the database's. The truth lies
// between the sending of the question and the arrival of the answer.
func (x *examiner) clock(ctx context.Context) error {
	conn, err := x.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &x.found.Clock
	for n := range looks {
		var now time.Time
		asked := time.Now()
		if err := conn.QueryRowContext(ctx, x.d.sql(`SELECT {now}`)).Scan(instant{&now}); err != nil {
			return err
		}
		half := time.Since(asked) / 2
		if n == 0 || half < c.Within {
			c.Ahead, c.Within = asked.Add(half).Sub(now), half
		}
	}
	return nil
}

// time notes when all of this was seen. It comes last, so that nothing that was
// seen lies after it.
func (x *examiner) time(ctx context.Context) error {
	return x.one(ctx, `SELECT {now}`, instant{&x.found.At})
}
