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
	isOpen  func(bootID string) (open, known bool)
	terms   *terms
	locked  *sync.Map // of locks whose rows were found locked by another client
	futures *futures
}

// Leases returns the provider of this database's locks.
func (db *DB) Leases() *Leases {
	return &Leases{
		db: db.db, engine: db.engine, log: db.log, metrics: db.metrics, isOpen: db.isOpen,
		self:  func() process { return process{db.bootID, db.shownBy()} },
		terms: &db.terms, locked: &db.locked, futures: &db.futures,
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
	if r.Mode != "" && r.Mode != lock.Exclusive {
		return lock.Grant{}, fmt.Errorf("acquire lock %s in mode %s: %w", r.Key, r.Mode, lock.ErrUnsupported)
	}
	g := lock.Grant{Request: r, Term: uuid.NewString(), Began: time.Now()}
	l.terms.enter(g.Term)
	fence, before, err := l.attempt(ctx, g)
	l.warnLocked(r, err)
	switch {
	case err == nil && ctx.Err() != nil:
		l.giveBack(ctx, g)
		return lock.Grant{}, fmt.Errorf("acquire lock %s: %w", r.Key, context.Cause(ctx))
	case errors.Is(err, errHeld):
		l.terms.leave(g.Term)
		return lock.Grant{}, l.holder(ctx, r)
	case err != nil:
		if sqldb.OutcomeUnknown(err) {
			l.giveBack(ctx, g)
		}
		l.terms.leave(g.Term)
		return lock.Grant{}, fmt.Errorf("acquire lock %s: %w", r.Key, err)
	}
	g.Fence = fence
	l.tookOver(g, before)
	return g, nil
}

// stored is the grant as its row has it.
func stored(g lock.Grant) lock.Grant {
	g.Key = rowKey(g.Key)
	return g
}

// attempt runs to its end, whatever becomes of ctx, but for its deadline.
func (l *Leases) attempt(ctx context.Context, g lock.Grant) (fence int64, before previousHolder, err error) {
	limit := acquireGrace
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	acquire := func() (err error) {
		fence, before, err = l.engine.acquire(ctx, stored(g), l.self())
		return err
	}
	if err := l.db.Fits(ctx); err != nil {
		return 0, before, err
	}
	err = sqldb.RetryConflicts(ctx, acquire)
	if sqldb.LockTableChanged(err) {
		// INT_LOCK has become one of another generation while we run.
		if err = l.db.Recognise(ctx); err == nil {
			err = sqldb.RetryConflicts(ctx, acquire)
		}
	}
	return fence, before, sqldb.BusyPool(l.db.Acquire, err)
}

func (l *Leases) giveBack(ctx context.Context, g lock.Grant) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseGrace)
	defer cancel()
	if err := l.Release(ctx, g); err != nil && !errors.Is(err, lock.ErrLost) {
		l.log.Debug("Unanswered acquisition not given back; it ends with its TTL", "lock", g.Key, "err", err)
	}
}

// holder says who has the lock. What it finds may have changed since.
func (l *Leases) holder(ctx context.Context, r lock.Request) error {
	held := &lock.HeldError{Key: r.Key}
	h, err := l.Holder(ctx, r)
	if err == nil && h.Held {
		held.Node, held.Left = h.Node, h.Left
	}
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
}

// holderTTL is the TTL of the holder, and that of the request for a foreign one.
const holderTTL = `COALESCE(` + sqldb.HolderTTL + `, CAST($3 AS DOUBLE PRECISION))`

const holderSQL = `
SELECT l.client_id, {unexpired}, ` + holderTTL + `, {began}, {utc}, o.node, o.fence, {future}
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
	var future string
	err := l.db.Acquire.QueryRowContext(ctx, l.db.LockSQL(holderSQL, "l", holderTTL),
		rowKey(r.Key), r.Region, r.TTL.Seconds()).
		Scan(&h.Term, &h.Held, &ttl, sqldb.ScanTime(&touched), sqldb.ScanTime(&now), &node, &fence, sqldb.ScanText(&future))
	if errors.Is(err, sql.ErrNoRows) {
		return Holder{}, nil
	}
	if err != nil {
		return Holder{}, fmt.Errorf("look at lock %s: %w", r.Key, err)
	}
	h.Term, h.Node, h.Fence = sqldb.Unpadded(h.Term), node.String, fence.Int64
	if h.Held {
		h.Left = max(0, time.Duration(ttl*float64(time.Second))-now.Sub(touched))
	}
	l.futures.tell(r, h.Term, future, now)
	return h, nil
}

// Renew implements [lock.Provider].
func (l *Leases) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	if len(grants) == 0 {
		return nil, nil
	}
	rows := make([]lock.Grant, len(grants))
	for i, g := range grants {
		rows[i] = stored(g)
	}
	var renewals []lock.Renewal
	err := sqldb.RetryConflicts(ctx, func() (err error) {
		renewals, err = l.engine.renew(ctx, rows)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("renew %d leases: %w", len(grants), err)
	}
	for i, answer := range renewals {
		if answer == lock.Lost {
			l.terms.leave(grants[i].Term)
		}
	}
	return renewals, nil
}

// Release implements [lock.Provider]: a compare-and-delete by the term. A row
// that another client has locked is skipped and tried again until ctx ends: waiting
// for it would take a connection from the renewals of other leases. A row that
// remains after an error is deleted later by [liveness.Monitor], in a process that looks
// who lives; in others it lasts for its TTL.
func (l *Leases) Release(ctx context.Context, g lock.Grant) error {
	defer l.terms.leave(g.Term)
	err := retryLocked(ctx, func() error {
		return sqldb.RetryConflicts(ctx, func() error { return l.release(ctx, stored(g)) })
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
