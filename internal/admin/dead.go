package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wait"
	"github.com/observerd/observerd/internal/wiring"
)

// DeadRow is the record of a poison row, see package lockdb.
type DeadRow = lockdb.DeadRow

// DeadFilter says which records are meant, see package lockdb.
type DeadFilter = lockdb.DeadFilter

// Dead returns the records of poison rows, those that were met last first, and the
// database's clock. Streams of the filter must be known.
func (op *Operator) Dead(ctx context.Context, f DeadFilter) ([]DeadRow, time.Time, error) {
	if err := op.ready(ctx); err != nil {
		return nil, time.Time{}, err
	}
	found, err := op.db.Operations().Dead(ctx, f)
	if err != nil {
		return nil, time.Time{}, err
	}
	// An observer that is not configured any more has records, and no cursor is needed.
	for _, id := range f.Streams {
		if slices.ContainsFunc(found, func(d DeadRow) bool { return d.Stream == id }) {
			continue
		}
		if err := op.KnowsObserver(ctx, id); err != nil {
			return nil, time.Time{}, err
		}
	}
	now, err := op.db.Now(ctx)
	return found, now, err
}

// DropDead removes records of one observer, at least one, and returns how many there were.
func (op *Operator) DropDead(ctx context.Context, rows []DeadRow, by By) (int64, error) {
	return op.db.Operations().DropDead(ctx, idsOf(rows), deadAct(by, "drop-dead", rows))
}

// idsShown is how many records the audit table names.
const idsShown = 20

// deadAct names the records by their numbers. A key is a value of a row.
func deadAct(by By, action string, rows []DeadRow) lockdb.Act {
	return lockdb.Did(by, action, rows[0].Stream, named(rows, func(d DeadRow) string { return fmt.Sprint(d.ID) }))
}

// named names the first of many records.
func named[T any](all []T, name func(T) string) string {
	names := fn.Each(all[:min(len(all), idsShown)], name)
	if more := len(all) - idsShown; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return "records " + strings.Join(names, ", ")
}

func idsOf(rows []DeadRow) []int64 { return fn.Each(rows, func(d DeadRow) int64 { return d.ID }) }

// RetryOutcome says what a retry has made of a record.
type RetryOutcome = observer.RetryOutcome

// The outcomes: those of package observer, and that of a record without a key, by which
// no row can be read.
const (
	RetryEvent                 = observer.RetryEvent
	RetryObserved              = observer.RetryObserved
	RetryPoison                = observer.RetryPoison
	RetryMissing               = observer.RetryMissing
	RetryKeyless  RetryOutcome = "keyless"
)

// RetriedRow is what a retry has made of a record.
type RetriedRow struct {
	DeadRow
	Outcome RetryOutcome
	// Found is why the row still is poison.
	Found string
	// Seq is the sequence of its event; 0 for none.
	Seq int64
}

// errRetryTimeout is the cause that ends a step which keeps the lock for as long as a
// poll may, and has read no row.
var errRetryTimeout = errors.New("a row was not read within poll-timeout; is there an index on the key?")

// deadBatch is how many rows are read again between two looks at the clock.
const deadBatch = 10

// RetryDead reads the rows of records of one observer again by their keys, and commits
// those that can be read, under the lock of the observer's type and in the same fenced
// commits as a poll. Their records are removed after that, under the same lease: if
// this process dies in between, the next retry finds the rows observed. It returns what
// has become of the records before an error.
func (op *Operator) RetryDead(ctx context.Context, rows []DeadRow, by By) (done []RetriedRow, err error) {
	id := rows[0].Stream
	o, src, err := op.sourceOf(id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	s := wiring.Spec(o, op.log)
	s.Definition = wiring.DefinitionHash(o, src)
	r := &deadRetry{op: op, id: id, source: src, typ: wiring.TypeOf(op.cfg, o), act: deadAct(by, "retry-dead", rows), left: make(map[string][]DeadRow)}
	if r.observer, err = observer.New(s); err != nil {
		return nil, err
	}
	for _, d := range rows {
		if d.Key == "" {
			r.done = append(r.done, RetriedRow{DeadRow: d, Outcome: RetryKeyless})
			continue
		}
		if r.left[d.Key] == nil {
			r.keys = append(r.keys, d.Key)
		}
		r.left[d.Key] = append(r.left[d.Key], d)
	}
	return r.done, adviseDead(o, r.run(ctx, o))
}

// whenFree is underLease that waits for as long as ctx lasts.
func (op *Operator) whenFree(ctx context.Context, o config.Observer, do func(context.Context, lock.Grant) error) error {
	for {
		err := op.underLease(ctx, o, do)
		if !errors.As(err, new(*lock.HeldError)) || !wait.For(ctx, lookAgain) {
			return err
		}
	}
}

// deadRetry is a retry of the records of one observer.
type deadRetry struct {
	op       *Operator
	id       string
	source   observer.Source
	observer *observer.Observer
	typ      config.Type
	act      lockdb.Act
	noted    bool
	keys     []string             // that are left
	left     map[string][]DeadRow // their records
	done     []RetriedRow
}

// run takes steps until no record is left, between the polls of the type.
func (r *deadRetry) run(ctx context.Context, o config.Observer) error {
	for len(r.keys) > 0 {
		if err := r.giveWay(ctx); err != nil {
			return err
		}
		if err := r.op.whenFree(ctx, o, r.step); err != nil {
			return err
		}
	}
	return nil
}

// giveWay lets a poll that is due go first, for a short time: the type may not be polled at
// this time of day.
func (r *deadRetry) giveWay(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, idleFor)
	defer cancel()
	err := r.op.giveWay(bounded, r.typ, stepOf(r.typ.Interval), func() {})
	if bounded.Err() != nil {
		return ctx.Err()
	}
	return err
}

// step reads rows for the time of a step under one lease, so that polls come in between.
func (r *deadRetry) step(ctx context.Context, g lock.Grant) error {
	if err := r.op.checkPaused(ctx, r.id); err != nil {
		return err
	}
	if !r.noted {
		if err := r.op.db.Operations().Note(ctx, r.act); err != nil {
			return err
		}
		r.noted = true
	}
	limited, cancel := context.WithTimeoutCause(ctx, r.typ.Observers[0].PollTimeout, errRetryTimeout)
	defer cancel()
	read := 0
	for began := time.Now(); len(r.keys) > 0 && limited.Err() == nil && time.Since(began) < stepOf(r.typ.Interval); {
		some := r.keys[:min(len(r.keys), deadBatch)]
		all, err := r.observer.Retry(limited, r.source, r.op.db.Store(g), some)
		if read += len(all); errors.Is(err, errRetryTimeout) && read > 0 {
			err = nil // The next step has its own time.
		}
		r.keys = r.keys[len(all):]
		if err := errors.Join(err, r.settle(ctx, g, all)); err != nil {
			return err
		}
	}
	return nil
}

// settle removes the records of rows that are observed by now.
func (r *deadRetry) settle(ctx context.Context, g lock.Grant, all []observer.Retried) error {
	var ids []int64
	for _, one := range all {
		records := r.left[one.Key]
		for _, d := range records {
			r.done = append(r.done, RetriedRow{d, one.Outcome, one.Reason, one.Seq})
		}
		if one.Outcome == RetryEvent || one.Outcome == RetryObserved {
			ids = append(ids, idsOf(records)...)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return r.op.db.Operations().SettleDead(ctx, g, r.id, ids)
}

// adviseDead says what reads the rows where a retry does not.
func adviseDead(o config.Observer, err error) error {
	switch {
	case !errors.Is(err, observer.ErrNoKeyLookup):
		return err
	case o.Timestamp == "" || o.Detect == config.DetectSnapshot:
		return fmt.Errorf("%w; each poll of %s reads all rows, and makes events of those that were fixed", err, o.ID)
	}
	return fmt.Errorf("%w; 'observerd observers backfill %s' reads all rows again, and makes events of those that were fixed", err, o.ID)
}

// ActFilter says which acts are meant, see package lockdb.
type ActFilter = lockdb.ActFilter

// Acts returns what operators did, newest first.
func (op *Operator) Acts(ctx context.Context, f ActFilter) ([]status.Act, error) {
	if err := op.ready(ctx); err != nil {
		return nil, err
	}
	return op.db.Operations().Acts(ctx, f)
}
