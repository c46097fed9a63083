package lockdb

import (
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// The rules by which a lease may be taken over from a holder that did not give
// it back.
const (
	ruleSessionGone = liveness.RuleSessionGone
	ruleTTL         = "ttl"
)

// previousHolder is the holder that an acquisition found in the place of its own rows.
type previousHolder struct {
	// expired says that a row stood in INT_LOCK whose lease had ended.
	expired bool
	// ours says that a process of ours had written it, or that there was no row.
	ours bool
	// liveness is empty when an older binary wrote it.
	liveness, node string
}

// previousSQL returns the previousHolder. It reads what was there before the
// statement, or the transaction, that acquires. On PostgreSQL the rows may have
// changed since, and then a takeover goes unnoticed, or is logged twice.
// {ended} is whether a row stood there whose lease had ended.
const previousSQL = `
SELECT {ended} AS expired, COALESCE(l.client_id = o.term, l.client_id IS NULL) AS ours,
       CASE WHEN o.boot_term = o.term THEN o.liveness END AS liveness, o.node AS node
  FROM (SELECT 1 AS one) x
  LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
  LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2`

// scan returns where a row of previousSQL goes.
func (p *previousHolder) scan() []any {
	return []any{&p.expired, &p.ours, sqldb.ScanText(&p.liveness), sqldb.ScanText(&p.node)}
}

// rule returns by which rule the lease was taken over. It is empty when the lock was free.
func (p previousHolder) rule() string {
	switch {
	case !p.expired && p.liveness == liveness.FoundDead:
		return ruleSessionGone
	case !p.expired, p.ours && p.liveness == liveness.Released:
		return ""
	}
	return ruleTTL
}

// tookOver logs and counts a lease that its last holder did not release. It reports whether
// this is one.
func (l *Leases) tookOver(g lock.Grant, p previousHolder) bool {
	rule := p.rule()
	if rule == "" {
		return false
	}
	l.metrics.takeovers.WithLabelValues(rule).Inc()
	from := p.node
	if !p.ours {
		from = ""
	}
	l.log.Info("Lease taken over", "lock", g.Key, "name", g.Name, "from", from, "fence", g.Fence, "rule", rule)
	return true
}
