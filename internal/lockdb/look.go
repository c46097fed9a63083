package lockdb

import (
	"context"
	"fmt"
	"time"
)

// look is one look: it notes who is absent, judges, frees the leases of the
// dead, and tells those who wait.
func (l *Liveness) look(ctx context.Context) error {
	var s sight
	began := time.Now()
	err := l.attempt(ctx, 2*l.opts.Every, func(ctx context.Context) (err error) {
		s, err = l.p.look(ctx)
		return err
	})
	if tableChanged(err) && !l.relooked {
		// INT_LOCK has become one of another generation while we run.
		l.relooked = true
		return l.attempt(ctx, 2*l.opts.Every, l.db.recognise)
	}
	if err != nil {
		return err
	}
	l.relooked = false
	open, absent := l.census(s)
	dead := l.judge.look(began, time.Now(), l.marks(s, absent))
	if l.young() {
		dead = nil
	}
	locks := make(map[lockID]standing, len(s.leases))
	var failed error // after one failure the rest can wait for the next look
	for _, held := range s.leases {
		if free := l.remedy(held, dead); free != nil && failed == nil {
			var freed bool
			if freed, failed = l.free(ctx, held, free); freed {
				continue
			}
		}
		locks[held.lockID] = standing{held.term, held.expired}
	}
	gone := make(map[string]bool)
	for _, n := range s.nodes {
		if dead[n.id()] {
			gone[n.boot] = true
		}
	}
	l.news.bring(open, gone, locks)
	l.correct(ctx, s)
	return ctx.Err()
}

// young reports whether our session has not lasted long enough to judge others.
func (l *Liveness) young() bool { return !l.p.lasts() && time.Since(l.appeared) < l.opts.Age }

// id names the lease for the judge, and its present term.
func (l lease) id() string { return "lease " + l.term }

func (n nodeSeen) id() string { return "node " + n.boot }

// census returns the boot ids that were there, and those that can be judged and
// were not.
func (l *Liveness) census(s sight) (open, absent map[string]bool) {
	open, absent = make(map[string]bool), make(map[string]bool)
	note := func(boot, liveness string) {
		if boot == "" || boot == l.db.bootID || liveness != l.p.kind() {
			return
		}
		if open[boot] || absent[boot] {
			return
		}
		if alive, known := s.alive(boot); known {
			open[boot], absent[boot] = alive, !alive
		}
	}
	for _, held := range s.leases {
		note(held.boot, held.liveness)
	}
	for _, n := range s.nodes {
		note(n.boot, n.liveness)
	}
	return open, absent
}

// marks returns what the judge hears of the absent.
func (l *Liveness) marks(s sight, absent map[string]bool) map[string]string {
	marks := make(map[string]string)
	for _, held := range s.leases {
		if absent[held.boot] && held.liveness == l.p.kind() {
			marks[held.id()] = held.touched
		}
	}
	for _, n := range s.nodes {
		if absent[n.boot] && n.liveness == l.p.kind() {
			marks[n.id()] = n.touched
		}
	}
	return marks
}

// remedy is how a lease is freed that nobody holds any more.
type remedy struct {
	rule string
	free func(ctx context.Context, held lease) (freed bool, err error)
}

// remedy returns nil for a lease that may be held. The terms of this process are read
// after the rows: one that has a row was entered before.
func (l *Liveness) remedy(held lease, dead map[string]bool) *remedy {
	switch {
	case dead[held.id()]:
		return &remedy{ruleSessionGone, l.p.free}
	case l.db.bootID != "" && held.boot == l.db.bootID && !l.db.terms.has(held.term):
		return &remedy{ruleOwnTerm, l.db.forsake}
	}
	return nil
}

// free frees a lease; false when it is not to be had, now or any more.
func (l *Liveness) free(ctx context.Context, held lease, how *remedy) (freed bool, err error) {
	err = l.attempt(ctx, 2*l.opts.Every, func(ctx context.Context) (err error) {
		freed, err = how.free(ctx, held)
		return err
	})
	switch {
	case err != nil && ctx.Err() == nil:
		l.opts.Logger.Warn("Lease that nobody holds not freed; trying again", "lock", held.key, "from", held.node, "rule", how.rule, "err", err)
	case freed:
		l.opts.Logger.Info("Lease freed", "lock", held.key, "name", held.name, "from", held.node, "rule", how.rule)
	}
	return freed, err
}

// forsake deletes the row of a term of this process that has ended. One that somebody
// has locked is left for the next look.
func (db *DB) forsake(ctx context.Context, held lease) (freed bool, err error) {
	result, err := db.lease.ExecContext(ctx, db.deleteUnlocked(`
		 WHERE lock_key = $1 AND region = $2 AND client_id = $3`), held.key, held.region, held.term)
	if err != nil {
		return false, fmt.Errorf("delete the lease of an ended term: %w", err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// correct sees to it that our own rows say how others see us: a lease may have
// been acquired before they could.
func (l *Liveness) correct(ctx context.Context, s sight) {
	for _, held := range s.leases {
		if held.boot == l.db.bootID && held.liveness != l.p.kind() {
			l.mark(ctx, l.p.kind())
			return
		}
	}
	for _, n := range s.nodes {
		if n.boot == l.db.bootID && n.liveness != l.p.kind() {
			l.mark(ctx, l.p.kind())
			return
		}
	}
}

// mark writes into our own rows how others see us; false when it failed. The
// rows of leases that were taken from us stay as they are.
func (l *Liveness) mark(ctx context.Context, kind string) bool {
	err := l.attempt(ctx, 2*l.opts.Every, func(ctx context.Context) error {
		// Polls may have taken all connections but those of the leases.
		for _, text := range []string{
			`UPDATE obs_lock SET liveness = $2
			  WHERE boot_id = $1 AND boot_term = term AND liveness <> $2 AND liveness <> '` + foundDead + `'`,
			`UPDATE obs_node SET liveness = $2 WHERE boot_id = $1 AND liveness <> $2`,
		} {
			if _, err := l.db.lease.ExecContext(ctx, l.db.d.sql(text), l.db.bootID, kind); err != nil {
				return fmt.Errorf("mark the rows of this node: %w", err)
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		l.opts.Logger.Debug("How others see this node was not noted", "err", err)
	}
	return err == nil
}
