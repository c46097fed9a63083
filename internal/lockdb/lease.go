package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

// Leases grants exclusive locks in INT_LOCK, of keys that are locked in no other mode. It is
// a [lock.Provider].
type Leases DB

// Leases returns the provider of this database's locks.
func (db *DB) Leases() *Leases { return (*Leases)(db) }

// Acquire implements [lock.Provider]. An attempt that has been sent is not
// cancelled: it might be carried out after all, behind the back of the release
// that would follow, and stand until the TTL. It is waited for, briefly,
// and given back. One that ends without an answer is given back too.
func (l *Leases) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if ctx.Err() != nil {
		return lock.Grant{}, fmt.Errorf("acquire lock %s: %w", r.Key, context.Cause(ctx))
	}
	if !r.Mode.Alone() {
		return lock.Grant{}, fmt.Errorf("acquire lock %s in mode %s: %w", r.Key, r.Mode, lock.ErrUnsupported)
	}
	g := lock.Grant{Request: r, Term: uuid.NewString(), Began: time.Now()}
	var before previousHolder
	l.terms.Store(g.Term, true)
	err := l.db.Attempt(ctx, func(ctx context.Context) (err error) {
		g.Fence, before, err = l.engine.acquire(ctx, Stored(g), process{l.bootID, (*DB)(l).shownBy()})
		return err
	})
	l.db.NoteLocked(r.Key, r.Region, r.Name, err)
	switch {
	case err == nil && ctx.Err() != nil:
		lock.GiveBack(ctx, l, l.log, g)
		return lock.Grant{}, fmt.Errorf("acquire lock %s: %w", r.Key, context.Cause(ctx))
	case errors.Is(err, sqldb.ErrHeld):
		l.terms.Delete(g.Term)
		return lock.Grant{}, l.heldError(ctx, r)
	case err != nil:
		if sqldb.OutcomeUnknown(err) {
			lock.GiveBack(ctx, l, l.log, g)
		}
		l.terms.Delete(g.Term)
		return lock.Grant{}, fmt.Errorf("acquire lock %s: %w", r.Key, err)
	}
	g.Recovered = l.tookOver(g, before)
	return g, nil
}

// Stored is the grant as its row has it.
func Stored(g lock.Grant) lock.Grant {
	g.Key = RowKey(g.Key)
	return g
}

// StoredAll are the grants as their rows have them.
func StoredAll(grants []lock.Grant) []lock.Grant {
	return fn.Each(grants, Stored)
}

// heldError says who has the lock. What it finds may have changed since.
func (l *Leases) heldError(ctx context.Context, r lock.Request) error {
	held := &lock.HeldError{Key: r.Key}
	if h, err := l.Holder(ctx, r); err == nil && h.Held {
		held.Node, held.Left = h.Node, h.Left
		if h.Ahead {
			l.Redate(ctx, r)
		}
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
	// Ahead says that the lease is ours and dated in the future.
	Ahead bool
}

// Holder looks at the lock of the request; its TTL counts, where the row has
// no expiry of its own. A node that did not get the lock asks, so this never
// takes a connection from a renewal.
func (l *Leases) Holder(ctx context.Context, r lock.Request) (Holder, error) {
	var h Holder
	var node sql.NullString
	var fence sql.NullInt64
	var touched, now time.Time
	var ttl float64
	err := l.db.Acquire.QueryRowContext(ctx, l.sql.SQL().Lease.Holder,
		RowKey(r.Key), r.Region, r.TTL.Seconds()).
		Scan(&h.Term, &h.Held, &ttl, sqldb.ScanTime(&touched), sqldb.ScanTime(&now), &node, &fence, &h.Ahead)
	if errors.Is(err, sql.ErrNoRows) {
		return Holder{}, nil
	}
	if err != nil {
		return Holder{}, fmt.Errorf("look at lock %s: %w", r.Key, err)
	}
	h.Term, h.Node, h.Fence = sqldb.Unpadded(h.Term), node.String, fence.Int64
	if h.Held {
		h.Left = LeftOf(time.Duration(ttl*float64(time.Second)), now.Sub(touched))
	}
	return h, nil
}

// LeftOf is how long a lease still runs that was renewed that long ago. One that is dated in
// the future is dated now when somebody wants its lock.
func LeftOf(ttl, ago time.Duration) time.Duration { return max(0, ttl-max(0, ago)) }

// Redate dates a lease that is dated in the future now, for a caller that was refused and
// tries again.
func (l *Leases) Redate(ctx context.Context, r lock.Request) {
	err := l.db.Fits(ctx)
	if err == nil {
		_, err = l.db.Acquire.ExecContext(ctx, l.sql.SQL().Lease.Redate, RowKey(r.Key), r.Region)
	}
	if err != nil {
		l.log.Debug("The date of a lease in the future was not corrected; the next attempt corrects it", "lock", r.Key, "err", err)
	}
}

// Renew implements [lock.Provider].
func (l *Leases) Renew(ctx context.Context, grants []lock.Grant) (renewals []lock.Renewal, err error) {
	if len(grants) == 0 {
		return nil, nil
	}
	rows := StoredAll(grants)
	err = sqldb.RetryConflicts(ctx, func() error {
		renewals, err = l.engine.renew(ctx, rows)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("renew %d leases: %w", len(grants), err)
	}
	for i, answer := range renewals {
		if answer == lock.Lost {
			l.terms.Delete(grants[i].Term)
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
	defer l.terms.Delete(g.Term)
	err := sqldb.RetryLocked(ctx, func() error { return l.release(ctx, Stored(g)) })
	if err != nil {
		return fmt.Errorf("release lock %s: %w", g.Key, err)
	}
	return nil
}

// release tries once. The error is [sqldb.ErrLocked] when another client has locked the row.
func (l *Leases) release(ctx context.Context, g lock.Grant) error {
	n, err := sqldb.Affected(l.db.Lease.ExecContext(ctx, l.sql.SQL().Lease.Release, g.Key, g.Region, g.Term))
	if n > 0 || err != nil {
		return err
	}
	var ours bool
	err = l.db.Lease.QueryRowContext(ctx, l.sql.SQL().Lease.Holds, g.Key, g.Region, g.Term).Scan(&ours)
	switch {
	case err != nil:
		return err
	case ours:
		return sqldb.ErrLocked
	}
	return lock.ErrLost
}

// GuardSQL implements [lock.Guard].
func (l *Leases) GuardSQL(g lock.Grant) (text string, args []any) {
	return l.sql.SQL().Lease.Guard, []any{RowKey(g.Key), g.Region, g.Term, g.TTL.Seconds()}
}

// tookOver logs and counts a lease that its last holder did not release. It reports whether
// this is one.
func (l *Leases) tookOver(g lock.Grant, p previousHolder) bool {
	var rule string
	switch {
	case p.expired:
		rule = RuleTTL
	case p.liveness == liveness.FoundDead:
		rule = liveness.RuleSessionGone
	default: // The lock was free.
		return false
	}
	l.metrics.takeovers.WithLabelValues(rule).Inc()
	l.log.Info("Lease taken over", "lock", g.Key, "name", g.Name, "from", p.node, "fence", g.Fence, "rule", rule)
	return true
}

// Capabilities implements [lock.Provider].
func (l *Leases) Capabilities() lock.Capabilities {
	c := Capabilities(l.db.Backend())
	c.Guard = l
	return c
}

// Capabilities returns what all locks in a database of the backend have.
func Capabilities(backend string) lock.Capabilities {
	c := lock.Capabilities{Name: backend, MinTTL: time.Second, MostAttempts: sqldb.AcquireConns}
	if backend == "sqlite" {
		// Another process may block the file for seconds, and a renewal with it.
		c.MinTTL, c.MostAttempts = 15*time.Second, 1
	}
	return c
}

// tolerable is how far the clock of a foreign holder may be off unsaid. A row that lies further
// ahead of the database's clock says that this has gone back, or that the other one is wrong. One
// of ours is dated anew when another wants the lock.
const tolerable = 2 * time.Second

// mostCounted bounds how many locks are counted.
const mostCounted = 10_000

// Locks returns rows of INT_LOCK, sorted by region and key, at most as many as limit says:
// those of the regions in first come first. total is how many there are, counted up to
// [mostCounted].
func (l *Leases) Locks(ctx context.Context, first []string, limit int) (locks []status.Lock, total int64, err error) {
	regions := l.db.List(append([]string{""}, first...))
	locks, err = sqldb.All(ctx, l.db, "read the locks", l.sql.SQL().Lease.Locks,
		func(scan sqldb.Scan, l *status.Lock) error {
			var term, name, node sql.NullString
			var fence, ttl sql.NullInt64
			var touched, now time.Time
			var descriptor string
			var holders int
			err := scan(&l.Key, &l.Region, &term, sqldb.ScanTime(&touched), sqldb.ScanTime(&now), &name, &node, &fence, &ttl, sqldb.ScanTime(&l.AcquiredAt), &descriptor, &l.Waiting, &holders, &total)
			l.Key, l.Term = sqldb.Unpadded(l.Key), sqldb.Unpadded(term.String)
			l.Name, l.Holder, l.Fence = name.String, node.String, fence.Int64
			if holders > 0 {
				l.Holder = fmt.Sprintf("%d holders", holders)
			}
			if l.Ahead = touched.Sub(now); l.Ahead < tolerable {
				l.Ahead = 0
			}
			if lives := time.Duration(ttl.Int64) * time.Millisecond; ttl.Valid {
				l.Left = lives - max(0, now.Sub(touched))
			}
			if parts := strings.SplitN(descriptor, ":", 5); len(parts) == 5 { // "lock:mode:subject:predicate:…"
				plain := strings.NewReplacer("%3A", ":", "%25", "%")
				l.Mode, l.Subject, l.Predicate = parts[1], plain.Replace(parts[2]), plain.Replace(parts[3])
			}
			return err
		}, regions, limit, mostCounted)
	return locks, total, err
}
