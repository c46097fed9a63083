package liveness

import (
	"context"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// look is one look: it notes who is absent, judges, frees the leases of the
// dead, and wakes the waiting goroutines.
func (m *Monitor) look(ctx context.Context) error {
	var s snapshot
	began := time.Now()
	err := m.attempt(ctx, 2*m.opts.Every, func(ctx context.Context) (err error) {
		s, err = m.p.look(ctx, m.opts.Regions)
		return err
	})
	if sqldb.LockTableChanged(err) && !m.relooked {
		// INT_LOCK has become one of another generation while we run.
		m.relooked = true
		return m.attempt(ctx, 2*m.opts.Every, m.db.Recognise)
	}
	if err != nil {
		return err
	}
	m.relooked, m.pace = false, s.pace
	dead := m.detector.look(began, time.Now(), m.marks(s))
	if !m.p.lasts() && time.Since(m.appeared) < m.opts.Age { // Our session has not lasted long enough to judge others.
		dead = nil
	}
	locks := m.freeAll(ctx, s.leases, dead)
	var gone map[string]bool
	if !s.resting {
		gone = make(map[string]bool)
	}
	for _, n := range s.nodes {
		if dead[nodeID(n.boot)] {
			gone[n.boot] = true
		}
	}
	m.update(gone, locks)
	m.correct(ctx, s)
	return ctx.Err()
}

// freeAll frees the leases that nobody holds, and returns how the others stand.
func (m *Monitor) freeAll(ctx context.Context, leases []lease, dead map[string]bool) map[LockID]standing {
	locks := make(map[LockID]standing, len(leases))
	var failed error // after one failure the rest can wait for the next look
	for _, held := range leases {
		if free := m.remedy(held, dead); free != nil && failed == nil {
			var freed bool
			if freed, failed = m.free(ctx, held, free); freed {
				continue
			}
		}
		locks[held.LockID] = standing{held.term, held.expired}
	}
	if failed == nil {
		if lasted, over := m.unfreed.End(); over {
			m.opts.Logger.Info("Leases without a holder can be freed again", "after", lasted)
		}
	}
	return locks
}

// marks returns the marks for the detector of those that can be judged and are absent.
func (m *Monitor) marks(s snapshot) map[string]string {
	absent, marks := make(map[string]bool), make(map[string]string)
	for id, of := range s.signs {
		boot := of.boot
		if boot == "" || boot == m.opts.BootID || of.liveness != m.p.kind() {
			continue
		}
		if _, noted := absent[boot]; !noted {
			alive, known := s.alive(boot)
			absent[boot] = !alive && known
		}
		if absent[boot] {
			marks[id] = of.touched
		}
	}
	return marks
}

// remedy is how a lease without a holder is freed.
type remedy struct {
	rule string
	free func(ctx context.Context, held lease) (freed bool, err error)
}

// remedy returns nil for a lease that may be held. The terms of this process are read
// after the rows: one that has a row was entered before.
func (m *Monitor) remedy(held lease, dead map[string]bool) *remedy {
	switch {
	case dead[held.id()]:
		return &remedy{RuleSessionGone, m.p.free}
	case m.opts.BootID != "" && held.boot == m.opts.BootID && !m.opts.Holds(held.term):
		return &remedy{RuleOwnTerm, m.deleteEnded}
	}
	return nil
}

// free frees a lease; false when it is not to be had, now or any more.
func (m *Monitor) free(ctx context.Context, held lease, how *remedy) (freed bool, err error) {
	err = m.attempt(ctx, 2*m.opts.Every, func(ctx context.Context) (err error) {
		freed, err = how.free(ctx, held)
		return err
	})
	switch {
	case err != nil && ctx.Err() == nil && m.unfreed.Begin():
		m.opts.Logger.Warn("Lease without a holder not freed; trying again", "lock", held.Key, "from", held.node, "rule", how.rule, "err", err)
	case freed:
		m.opts.Logger.Info("Lease freed", "lock", held.Key, "name", held.name, "from", held.node, "rule", how.rule)
	}
	return freed, err
}

// deleteEnded deletes the row of a term of this process that has ended. One that another
// client has locked is left for the next look.
func (m *Monitor) deleteEnded(ctx context.Context, held lease) (freed bool, err error) {
	n, err := sqldb.Affected(m.db.Lease.ExecContext(ctx, m.sql.SQL().DeleteEnded, held.Key, held.Region, held.term))
	if err != nil {
		err = fmt.Errorf("delete the lease of an ended term: %w", err)
	}
	return n > 0, err
}

// correct sees to it that our own rows say how others see us: a lease may have
// been acquired before they could.
func (m *Monitor) correct(ctx context.Context, s snapshot) {
	for _, of := range s.signs {
		if of.boot == m.opts.BootID && of.liveness != m.p.kind() {
			m.mark(ctx, m.p.kind())
			return
		}
	}
}

// mark writes into our own rows how others see us; false when it failed.
func (m *Monitor) mark(ctx context.Context, kind string) bool {
	err := m.attempt(ctx, 2*m.opts.Every, func(ctx context.Context) error {
		// Polls may have taken all connections but those of the leases.
		for _, text := range []string{m.sql.SQL().MarkLeases, m.sql.SQL().MarkNode} {
			if _, err := m.db.Lease.ExecContext(ctx, text, m.opts.BootID, kind); err != nil {
				return fmt.Errorf("mark the rows of this node: %w", err)
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		m.opts.Logger.Debug("How others see this node was not noted", "err", err)
	}
	return err == nil
}
