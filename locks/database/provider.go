package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/locks"
)

// Provider keeps locks in a coordination database, for [locks.Open]. It does not show that its
// process lives, as nodes do: a holder that is cut off trusts its leases for the whole TTL,
// and nothing fences the work of others, so nobody may free them earlier.
type Provider struct {
	node   *lockdb.DB
	db     *sqldb.DB
	sql    *sqldb.Statements[statements]
	engine engine
	// alone renews and releases locks that one holds alone, as a node's.
	alone *lockdb.Leases
	log   *slog.Logger
}

// engine has what PostgreSQL and SQLite cannot share. The grants are as their rows have them.
type engine interface {
	// acquireAlone takes one lock exclusively which nobody shares. The error is that of
	// acquireAll.
	acquireAlone(ctx context.Context, grants []lock.Grant) ([]acquired, error)
	// acquireAll takes all locks or none, in any mode. The error is a [refusedError] when
	// another has one of them.
	acquireAll(ctx context.Context, grants []lock.Grant) ([]acquired, error)
	// acquireIn takes one lock, in any mode, in a transaction in which its row was locked.
	// The error is [sqldb.ErrHeld] when another has it.
	acquireIn(ctx context.Context, tx *sql.Tx, g lock.Grant) (acquired, error)
	// wait notes those who wait, and says whose turn has come.
	wait(ctx context.Context, wanted []lock.Grant) ([]lock.Turn, error)
	// renewHolds renews locks that are shared, and releaseHold gives one back:
	// [sqldb.ErrLocked] when another client has locked its row, [lock.ErrLost] when the term
	// held it no more.
	renewHolds(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error)
	releaseHold(ctx context.Context, g lock.Grant) error
}

// On returns a provider on a database that is open, for the commands of observerd.
func On(node *lockdb.DB, log *slog.Logger) *Provider {
	db := node.SQL()
	p := &Provider{node: node, db: db, alone: node.Leases(), log: log}
	if db.Backend() == "sqlite" {
		p.sql = sqldb.NewStatements(db, sqliteStatements)
		p.engine = (*sqliteEngine)(p)
	} else {
		p.sql = sqldb.NewStatements(db, postgresStatements)
		p.engine = (*postgresEngine)(p)
	}
	return p
}

// errVacant reports a lock whose row stands though nobody holds it: those who shared it
// have died. It can be taken by the statement that looks at obs_hold.
var errVacant = fmt.Errorf("%w: all who shared the lock have ended", lock.ErrHeld)

// refusedError is [sqldb.ErrHeld] for one of several locks.
type refusedError struct{ n int }

func (refusedError) Error() string { return sqldb.ErrHeld.Error() }

func (refusedError) Is(target error) bool { return target == sqldb.ErrHeld }

// acquired is what an engine says of a lock that it has acquired.
type acquired struct {
	fence int64
	// expired says that a row stood there whose lease had ended, released that its holder,
	// of that node, had given it back before.
	expired, released bool
	node              string
}

// scan returns where the columns of an acquisition go.
func (a *acquired) scan() []any { return []any{&a.fence, &a.expired, &a.released, &a.node} }

// acquisition acquires all locks or none. The error is [sqldb.ErrHeld] when another has one
// of them, and a [refusedError] where that is not the first.
type acquisition func(ctx context.Context, grants []lock.Grant) ([]acquired, error)

// Acquire implements [lock.Provider]. An attempt that has been sent is not cancelled: it might
// be carried out after all, behind the back of the release that would follow, and stand until
// the TTL. It is waited for, briefly, and given back. One that ends without an answer is given
// back too.
func (p *Provider) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	how := p.engine.acquireAll
	if r.Mode.Alone() {
		how = p.engine.acquireAlone
	}
	grants, err := p.acquire(ctx, []lock.Request{r}, how)
	if errors.Is(err, errVacant) {
		grants, err = p.acquire(ctx, []lock.Request{r}, p.engine.acquireAll)
	}
	if err != nil {
		return lock.Grant{}, err
	}
	return grants[0], nil
}

// AcquireAll implements [lock.Sets]. It waits for a row that is locked as Acquire does,
// while it has locked those before it: all who lock several rows do it in one order.
func (p *Provider) AcquireAll(ctx context.Context, requests []lock.Request) ([]lock.Grant, error) {
	return p.acquire(ctx, requests, p.engine.acquireAll)
}

func (p *Provider) acquire(ctx context.Context, requests []lock.Request, how acquisition) ([]lock.Grant, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("acquire lock %s: %w", requests[0].Key, context.Cause(ctx))
	}
	grants := make([]lock.Grant, len(requests))
	for i, r := range requests {
		if !r.Mode.Known() {
			return nil, fmt.Errorf("acquire lock %s in mode %s: %w", r.Key, r.Mode, lock.ErrUnsupported)
		}
		grants[i] = lock.Grant{Request: r, Term: uuid.NewString(), Began: time.Now()}
	}
	var taken []acquired
	err := p.db.Attempt(ctx, func(ctx context.Context) (err error) {
		taken, err = how(ctx, lockdb.StoredAll(grants))
		return err
	})
	n := 0 // the lock of which the error speaks
	if refused, ok := errors.AsType[refusedError](err); ok {
		n = refused.n
	}
	p.db.NoteLocked(requests[n].Key, requests[n].Region, requests[n].Name, err)
	switch {
	case errors.Is(err, lock.ErrRenewed), errors.Is(err, lock.ErrEnded), errors.Is(err, lock.ErrHeld): // A steal was refused.
		return nil, fmt.Errorf("steal lock %s: %w", grants[0].Key, err)
	case err == nil && ctx.Err() != nil:
		lock.GiveBack(ctx, p, p.log, grants...)
		return nil, fmt.Errorf("acquire lock %s: %w", grants[0].Key, context.Cause(ctx))
	case errors.Is(err, sqldb.ErrHeld):
		return nil, p.heldError(ctx, requests[n])
	case err != nil:
		if sqldb.OutcomeUnknown(err) {
			lock.GiveBack(ctx, p, p.log, grants...)
		}
		return nil, fmt.Errorf("acquire lock %s: %w", grants[0].Key, err)
	}
	for i, a := range taken {
		g := &grants[i]
		g.Fence, g.Recovered = a.fence, a.expired && !a.released
		if g.Recovered {
			p.log.Info("Lease taken over", "lock", g.Key, "name", g.Name, "from", a.node, "fence", g.Fence, "rule", lockdb.RuleTTL)
		}
	}
	return grants, nil
}

// heldError says who has the lock, or comes before the caller in the line. What it finds may
// have changed since. The error is errVacant when a group has the lock of which no holder
// lives. A holder that is dated in the future is dated now.
func (p *Provider) heldError(ctx context.Context, r lock.Request) error {
	held := &lock.HeldError{Key: r.Key}
	g, err := p.group(ctx, r)
	switch {
	case err != nil:
		return held
	case g != nil && !g.lives && p.aheadOf(ctx, r) == "":
		return fmt.Errorf("%w %s", errVacant, r.Key)
	case g != nil && g.refuses:
		held.Node, held.Left = g.node, g.left
		p.redate(ctx, g.ahead, r)
		return held
	case g == nil:
		if h, err := p.alone.Holder(ctx, r); err == nil && h.Held {
			held.Node, held.Left = h.Node, h.Left
			p.redate(ctx, h.Ahead, r)
			return held
		}
	}
	held.Node = p.aheadOf(ctx, r)
	held.Waits = held.Node != ""
	return held
}

// redate dates those who hold the lock now, if that is earlier, for a caller that was refused
// and tries again.
func (p *Provider) redate(ctx context.Context, ahead bool, r lock.Request) {
	if !ahead {
		return
	}
	p.alone.Redate(ctx, r)
	if _, err := p.db.Acquire.ExecContext(ctx, p.sql.SQL().RedateHolds, lockdb.RowKey(r.Key), r.Region); err != nil {
		p.log.Debug("The date of a lease in the future was not corrected; the next attempt corrects it", "lock", r.Key, "err", err)
	}
}

// Renew implements [lock.Provider].
func (p *Provider) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	var alone, shared []lock.Grant
	for _, g := range grants {
		if g.Mode.Alone() {
			alone = append(alone, g)
		} else {
			shared = append(shared, g)
		}
	}
	answers, err := p.alone.Renew(ctx, alone)
	if err != nil {
		return nil, err
	}
	var holds []lock.Renewal
	if len(shared) > 0 {
		err = sqldb.RetryConflicts(ctx, func() (err error) {
			holds, err = p.engine.renewHolds(ctx, lockdb.StoredAll(shared))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("renew %d leases: %w", len(shared), err)
		}
	}
	renewals := make([]lock.Renewal, len(grants))
	for i, g := range grants {
		from := &holds
		if g.Mode.Alone() {
			from = &answers
		}
		renewals[i], *from = (*from)[0], (*from)[1:]
	}
	return renewals, nil
}

// Release implements [lock.Provider]; see [lockdb.Leases.Release]. The row of a lock that is
// shared is waited for, briefly, on a connection for acquisitions.
func (p *Provider) Release(ctx context.Context, g lock.Grant) error {
	if g.Mode.Alone() {
		return p.alone.Release(ctx, g)
	}
	err := sqldb.RetryLocked(ctx, func() error { return p.engine.releaseHold(ctx, lockdb.Stored(g)) })
	if err != nil {
		return fmt.Errorf("release lock %s: %w", g.Key, err)
	}
	return nil
}

// GuardSQL implements [lock.Guard].
func (p *Provider) GuardSQL(g lock.Grant) (text string, args []any) {
	if g.Mode.Alone() {
		return p.alone.GuardSQL(g)
	}
	return p.sql.SQL().GuardHold, rowOf(g)
}

// Capabilities implements [locks.Provider].
func (p *Provider) Capabilities() locks.Capabilities {
	c := p.capabilities(p.db.Backend())
	c.Closer = p.node
	return c
}

// Kinds returns what the locks of each kind of database have, for people: none is opened.
func Kinds() []locks.Capabilities {
	var none *Provider
	return []locks.Capabilities{none.capabilities("postgres"), none.capabilities("sqlite")}
}

func (p *Provider) capabilities(backend string) locks.Capabilities {
	c := lockdb.Capabilities(backend)
	c.Modes = true
	c.Sets, c.Extender, c.Guard, c.Line = p, p, p, p
	c.Finder, c.Stealer, c.Delayer, c.FailureLog = p, p, p, p
	return c
}
