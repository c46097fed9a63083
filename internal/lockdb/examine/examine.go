package examine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

// Options are the database to examine, and for how long.
type Options struct {
	// URL is "sqlite:PATH" or "postgres://…". Required.
	URL string
	// Watch is how long INT_LOCK is watched for rows that are written; 0 is
	// one look. Only of a row that was seen to be written can the clock of its
	// writer be told.
	Watch time.Duration
	// Every is the time between two looks. 0 means 200 ms.
	Every time.Duration
}

// Run looks at a coordination database, as far as there is one, and
// changes nothing: it reads in read-only transactions on connections of its
// own, sets nothing in the session and takes no lock. There is an error where
// nothing can be read: the database is [sqldb.Unavailable], there is a [sqldb.Refusal], or it
// is [sqldb.ErrNoDatabase]. A part that cannot be read, for lack of a right for
// example, is listed in the result instead.
func Run(ctx context.Context, o Options) (found status.Examination, err error) {
	o.Every = cmp.Or(o.Every, 200*time.Millisecond)
	x, err := newExaminer(o)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, x.db.Close()) }()
	err = x.run(ctx)
	return *x.found, err
}

// examiner gathers the facts. Its parts run one after the other, and each may
// rely on what those before it have found.
type examiner struct {
	options Options
	db      *sqldb.Inspection
	sql     *sqldb.Statements[examineSQL]
	found   *status.Examination
	// bound limits a transaction of the server; empty: nothing does.
	bound string
	parts []part
}

// part is one look at the database, under the name that is told when it fails; ours at tables
// that a migration makes.
type part struct {
	name string
	look func(x *examiner, ctx context.Context) error
	ours bool
}

func newExaminer(o Options) (*examiner, error) {
	db, err := sqldb.Inspect(o.URL, false)
	if err != nil {
		return nil, err
	}
	x := &examiner{options: o, db: db, sql: newExamineSQL(db.DB), found: &status.Examination{Backend: db.Backend()}}
	if db.Backend() == "sqlite" {
		x.sqlite()
	} else {
		x.postgres()
	}
	return x, nil
}

func (x *examiner) run(ctx context.Context) error {
	for _, p := range x.parts {
		if p.ours && !x.migrated() {
			continue
		}
		err := p.look(x, ctx)
		if unseen := whole(err); unseen != nil {
			return unseen
		}
		if ctx.Err() != nil || sqldb.NoSession(err) || sqldb.Unavailable(err) && !sqldb.LockTimedOut(err) {
			return fmt.Errorf("look at %s: %w", p.name, err)
		}
		if err != nil {
			x.found.Blind = append(x.found.Blind, status.Blind{Part: p.name, Reason: err.Error()})
		}
	}
	return nil
}

// whole returns the error, with its remedy, where it is not about one part: the
// server refuses sessions, or the file is no database. It is nil for every other.
func whole(err error) error {
	if refusal := sqldb.Refusal(err); refusal != "" {
		return fmt.Errorf("the coordination database cannot be examined: %s; fix that there, or correct database.url: %w", refusal, err)
	}
	for _, plain := range []error{sqldb.ErrUnreleased, sqldb.ErrNoDatabase, sqldb.ErrPooler, sqldb.ErrSearchPath, sqldb.ErrEncoding} {
		if errors.Is(err, plain) { // It says by itself what to do.
			return err
		}
	}
	return nil
}

// ourParts follow those that look at the server and at the table.
func ourParts() []part {
	return []part{
		{status.PartRows, (*examiner).watch, false},
		{status.PartLocks, (*examiner).acquisitions, true},
		{status.PartNodes, (*examiner).members, true},
		{status.PartSchedule, (*examiner).turns, true},
		{status.PartPauses, (*examiner).pauses, true},
		{status.PartPoison, (*examiner).poison, true},
		{status.PartOffsets, (*examiner).beyond, true},
		{status.PartTime, (*examiner).time, false},
	}
}

// inTx runs f in a transaction that cannot write.
func (x *examiner) inTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := x.db.Main.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	if x.bound != "" {
		_, err = tx.ExecContext(ctx, x.bound)
	}
	if err == nil {
		err = f(tx)
	}
	return errors.Join(err, sqldb.Rollback(tx))
}

// visit visits each row of a result.
func (x *examiner) visit(ctx context.Context, text string, row func(scan sqldb.Scan) error, args ...any) error {
	return x.inTx(ctx, func(tx *sql.Tx) error { return sqldb.Each(ctx, tx, text, row, args...) })
}

// collect appends what read reads of each row of a result.
func collect[T any](ctx context.Context, x *examiner, text string, to *[]T, read func(scan sqldb.Scan, row *T) error, args ...any) error {
	return x.visit(ctx, text, func(scan sqldb.Scan) error {
		var row T
		err := read(scan, &row)
		*to = append(*to, row)
		return err
	}, args...)
}

// names appends the only column of each row of a result.
func (x *examiner) names(ctx context.Context, text string, to *[]string, args ...any) error {
	return collect(ctx, x, text, to, func(scan sqldb.Scan, name *string) error { return scan(name) }, args...)
}

// one reads the only row of a result.
func (x *examiner) one(ctx context.Context, text string, into ...any) error {
	return x.inTx(ctx, func(tx *sql.Tx) error { return tx.QueryRowContext(ctx, text).Scan(into...) })
}

// looks is how often the clock is read: the fastest answer says most.
const looks = 9

// clock compares the clock of this host with the database's. The truth lies
// between the sending of the question and the arrival of the answer.
func (x *examiner) clock(ctx context.Context) error {
	conn, err := x.db.Main.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &x.found.Clock
	for n := range looks {
		var now time.Time
		asked := time.Now()
		if err := conn.QueryRowContext(ctx, x.sql.SQL().Clock).Scan(sqldb.ScanTime(&now)); err != nil {
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
	return x.one(ctx, x.sql.SQL().Clock, sqldb.ScanTime(&x.found.At))
}
