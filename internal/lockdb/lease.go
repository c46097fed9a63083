package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// errHeld is the engines' error for a lock that another node holds.
var errHeld = errors.New("held")

// errVacant reports a lock whose row stands though nobody holds it: those who shared it
// have died. It can be taken by the statement that looks at obs_hold.
var errVacant = fmt.Errorf("%w: all who shared the lock have ended", lock.ErrHeld)

const (
	// acquireGrace bounds an attempt to acquire that its caller has given up.
	acquireGrace = 5 * time.Second
	// releaseGrace bounds the release of a lock that is not wanted any more, or
	// whose acquisition was not answered.
	releaseGrace = 2 * time.Second
)

// Leases grants locks in INT_LOCK. It is a [lock.Provider].
type Leases struct {
	db      *sqldb.DB
	engine  engine
	log     *slog.Logger
	metrics *metrics
	self    func() process
	terms   *terms
	locked  *sync.Map // of locks whose rows were found locked by another client
}

// Leases returns the provider of this database's locks.
func (db *DB) Leases() *Leases {
	return &Leases{
		db: db.db, engine: db.engine, log: db.log, metrics: db.metrics,
		self:  func() process { return process{db.bootID, db.shownBy()} },
		terms: &db.terms, locked: &db.locked,
	}
}

// Acquire implements [lock.Provider]. An attempt that has been sent is not
// cancelled: it might be carried out after all, behind the back of the release
// that would follow, and stand until the TTL. It is waited for, briefly,
// and given back. One that ends without an answer is given back too.
func (l *Leases) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if ctx.Err() != nil {
		return lock.Grant{}, fmt.Errorf("acquire lock %s: %w", r.Key, context.Cause(ctx))
	}
	statement := l.engine.acquireAll
	if r.Mode.Alone() {
		statement = l.acquireAlone
	}
	grants, err := l.takeAll(ctx, []lock.Request{r}, statement)
	if errors.Is(err, errVacant) {
		grants, err = l.takeAll(ctx, []lock.Request{r}, l.engine.acquireAll)
	}
	if err != nil {
		return lock.Grant{}, err
	}
	return grants[0], nil
}

// acquisition is a statement that acquires all locks or none. The error is errHeld when
// another has one of them, and a refusedError where that is not the first.
type acquisition func(ctx context.Context, grants []lock.Grant, by process) ([]acquired, error)

// acquireAlone acquires one exclusive lock in one statement.
func (l *Leases) acquireAlone(ctx context.Context, grants []lock.Grant, by process) ([]acquired, error) {
	fence, before, err := l.engine.acquire(ctx, grants[0], by)
	return []acquired{{fence, before}}, err
}

// takeAll acquires all locks by the statement, or none.
func (l *Leases) takeAll(ctx context.Context, requests []lock.Request, statement acquisition) ([]lock.Grant, error) {
	grants := make([]lock.Grant, len(requests))
	for i, r := range requests {
		if !r.Mode.Known() {
			return nil, fmt.Errorf("acquire lock %s in mode %s: %w", r.Key, r.Mode, lock.ErrUnsupported)
		}
		grants[i] = lock.Grant{Request: r, Term: uuid.NewString(), Began: time.Now()}
	}
	return l.take(ctx, grants, statement)
}

// take sends the attempt, which is not cancelled then: see [Leases.Acquire].
func (l *Leases) take(ctx context.Context, grants []lock.Grant, statement acquisition) ([]lock.Grant, error) {
	for _, g := range grants {
		l.terms.enter(g.Term)
	}
	taken, err := l.attempt(ctx, grants, statement)
	var refused refusedError
	n := 0 // the lock of which the error speaks
	if errors.As(err, &refused) {
		n = refused.n
	}
	l.warnLocked(grants[n].Request, err)
	switch {
	case isVerdict(err):
		l.leave(grants)
		return nil, fmt.Errorf("steal lock %s: %w", grants[0].Key, err)
	case err == nil && ctx.Err() != nil:
		l.giveBack(ctx, grants)
		return nil, fmt.Errorf("acquire lock %s: %w", grants[0].Key, context.Cause(ctx))
	case errors.Is(err, errHeld):
		l.leave(grants)
		return nil, l.heldError(ctx, grants[n].Request)
	case err != nil:
		if sqldb.OutcomeUnknown(err) {
			l.giveBack(ctx, grants)
		}
		l.leave(grants)
		return nil, fmt.Errorf("acquire lock %s: %w", grants[0].Key, err)
	}
	for i := range grants {
		grants[i].Fence = taken[i].fence
		grants[i].Recovered = l.tookOver(grants[i], taken[i].before)
	}
	return grants, nil
}

func (l *Leases) leave(grants []lock.Grant) {
	for _, g := range grants {
		l.terms.leave(g.Term)
	}
}

// stored is the grant as its row has it.
func stored(g lock.Grant) lock.Grant {
	g.Key = rowKey(g.Key)
	return g
}

func storedAll(grants []lock.Grant) []lock.Grant {
	rows := make([]lock.Grant, len(grants))
	for i, g := range grants {
		rows[i] = stored(g)
	}
	return rows
}

// attempt runs to its end, whatever becomes of ctx, but for its deadline.
func (l *Leases) attempt(ctx context.Context, grants []lock.Grant, statement acquisition) (taken []acquired, err error) {
	limit := acquireGrace
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	rows := storedAll(grants)
	acquire := func() (err error) {
		taken, err = statement(ctx, rows, l.self())
		return err
	}
	if err := l.db.Fits(ctx); err != nil {
		return nil, err
	}
	err = sqldb.RetryConflicts(ctx, acquire)
	if sqldb.LockTableChanged(err) {
		// INT_LOCK has become one of another generation while we run.
		if err = l.db.Recognise(ctx); err == nil {
			err = sqldb.RetryConflicts(ctx, acquire)
		}
	}
	return taken, sqldb.BusyPool(l.db.Acquire, err)
}

func (l *Leases) giveBack(ctx context.Context, grants []lock.Grant) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseGrace)
	defer cancel()
	for _, g := range grants {
		if err := l.Release(ctx, g); err != nil && !errors.Is(err, lock.ErrLost) {
			l.log.Debug("Unanswered acquisition not given back; it ends with its TTL", "lock", g.Key, "err", err)
		}
	}
}

// heldError says who has the lock, or comes before the caller in the line. What it finds may
// have changed since. The error is errVacant when a group has the lock of which no holder
// lives. A holder that is dated in the future is dated now.
func (l *Leases) heldError(ctx context.Context, r lock.Request) error {
	held := &lock.HeldError{Key: r.Key}
	if r.Mode == "" {
		if h, err := l.Holder(ctx, r); err == nil && h.Held {
			held.Node, held.Left = h.Node, h.Left
			l.redateIf(ctx, h.Ahead, r)
		}
		return held
	}
	g, err := l.group(ctx, r)
	switch {
	case err != nil:
		return held
	case g != nil && !g.lives && l.aheadOf(ctx, r) == "":
		return fmt.Errorf("%w %s", errVacant, r.Key)
	case g != nil && g.refuses:
		held.Node, held.Left = g.node, g.left
		l.redateIf(ctx, g.ahead, r)
		return held
	case g == nil:
		if h, err := l.Holder(ctx, r); err == nil && h.Held {
			held.Node, held.Left = h.Node, h.Left
			l.redateIf(ctx, h.Ahead, r)
			return held
		}
	}
	held.Node = l.aheadOf(ctx, r)
	held.Waits = held.Node != ""
	return held
}

// Holder is the current holder of a lock.
type Holder struct {
	// Held says that the lock's row exists and that no other node may take it.
	Held bool
	// Node and Fence are empty for a holder that is not ours.
	Node  string
	Fence int64
	Term  string
	// Left is how long the lease still runs without a renewal.
	Left time.Duration
	// Ahead says that the lease is ours and dated in the future.
	Ahead bool
}

// holderTTL is the TTL of the holder, and that of the request for a foreign one.
const holderTTL = `COALESCE(o.ttl_ms / 1000.0, CAST($3 AS DOUBLE PRECISION))`

const holderSQL = `
SELECT l.client_id, {alive l ` + holderTTL + `}, ` + holderTTL + `, {began l ` + holderTTL + `}, {utc}, o.node, o.fence, o.term IS NOT NULL AND l.created_date > {utc}
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE l.lock_key = $1 AND l.region = $2`

// Holder looks at the lock of the request; its TTL counts, where the row has
// no expiry of its own. A node that did not get the lock asks, so this never
// takes a connection from a renewal.
func (l *Leases) Holder(ctx context.Context, r lock.Request) (Holder, error) {
	var h Holder
	var node sql.NullString
	var fence sql.NullInt64
	var touched, now time.Time
	var ttl float64
	err := l.db.Acquire.QueryRowContext(ctx, l.db.SQL(holderSQL),
		rowKey(r.Key), r.Region, r.TTL.Seconds()).
		Scan(&h.Term, &h.Held, &ttl, sqldb.ScanTime(&touched), sqldb.ScanTime(&now), &node, &fence, &h.Ahead)
	if errors.Is(err, sql.ErrNoRows) {
		return Holder{}, nil
	}
	if err != nil {
		return Holder{}, fmt.Errorf("look at lock %s: %w", r.Key, err)
	}
	h.Term, h.Node, h.Fence = sqldb.Unpadded(h.Term), node.String, fence.Int64
	if h.Held {
		h.Left = leftOf(time.Duration(ttl*float64(time.Second)), now.Sub(touched))
	}
	return h, nil
}

// leftOf is how long a lease still runs that was renewed that long ago. One that is dated in
// the future is dated now when somebody wants its lock.
func leftOf(ttl, ago time.Duration) time.Duration { return max(0, ttl-max(0, ago)) }

// Renew implements [lock.Provider].
func (l *Leases) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	if len(grants) == 0 {
		return nil, nil
	}
	renewals := make([]lock.Renewal, len(grants))
	for _, part := range []struct {
		shared bool
		renew  func(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error)
	}{{false, l.engine.renew}, {true, l.engine.renewHolds}} {
		if err := renewPart(ctx, grants, renewals, part.shared, part.renew); err != nil {
			return nil, fmt.Errorf("renew %d leases: %w", len(grants), err)
		}
	}
	for i, answer := range renewals {
		if answer == lock.Lost {
			l.terms.leave(grants[i].Term)
		}
	}
	return renewals, nil
}

// renewPart renews those of the grants that are shared, or that are not.
func renewPart(ctx context.Context, grants []lock.Grant, renewals []lock.Renewal, shared bool,
	renew func(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error),
) error {
	var rows []lock.Grant
	var at []int
	for i, g := range grants {
		if g.Mode.Alone() != shared {
			rows, at = append(rows, stored(g)), append(at, i)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return sqldb.RetryConflicts(ctx, func() error {
		answers, err := renew(ctx, rows)
		for i, answer := range answers {
			renewals[at[i]] = answer
		}
		return err
	})
}

// Release implements [lock.Provider]: a compare-and-delete by the term. A row
// that another client has locked is skipped and tried again until ctx ends: waiting
// for it would take a connection from the renewals of other leases. A row that
// remains after an error is deleted later by [liveness.Monitor], in a process that looks
// who lives; in others it lasts for its TTL. The row of a lock that is shared is waited
// for, briefly, on a connection for acquisitions.
func (l *Leases) Release(ctx context.Context, g lock.Grant) error {
	defer l.terms.leave(g.Term)
	release := l.release
	if !g.Mode.Alone() {
		release = l.engine.releaseHold
	}
	err := retryLocked(ctx, func() error {
		return sqldb.RetryConflicts(ctx, func() error { return release(ctx, stored(g)) })
	})
	if err != nil {
		return fmt.Errorf("release lock %s: %w", g.Key, err)
	}
	return nil
}

// release tries once. The error is errLocked when another client has locked the row.
func (l *Leases) release(ctx context.Context, g lock.Grant) error {
	result, err := l.db.Lease.ExecContext(ctx, l.db.DeleteLocksSQL(`
		 WHERE lock_key = $1 AND region = $2 AND client_id = $3`), g.Key, g.Region, g.Term)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); n > 0 || err != nil {
		return err
	}
	var ours bool
	err = l.db.Lease.QueryRowContext(ctx, l.db.SQL(`
		SELECT EXISTS (SELECT 1 FROM int_lock WHERE lock_key = $1 AND region = $2 AND client_id = $3)`), g.Key, g.Region, g.Term).Scan(&ours)
	switch {
	case err != nil:
		return err
	case ours:
		return errLocked
	}
	return lock.ErrLost
}
