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
	// expired says that a row stood in INT_LOCK whose lease had ended, ahead that
	// it had because its time lay too far in the future.
	expired, ahead bool
	// ours says that a process of ours had written it, or that there was no row.
	ours bool
	// boot and liveness are empty when an older binary wrote it.
	boot, liveness, node string
}

// previousSQL returns the previousHolder. It reads what was there before the
// statement, or the transaction, that acquires. On PostgreSQL the rows may have
// changed since, and then a takeover goes unnoticed, or is logged twice.
// {ended} is whether a row stood there whose lease had ended.
const previousSQL = `
SELECT {ended} AS expired, COALESCE({ahead}, FALSE) AS ahead, COALESCE(l.client_id = o.term, l.client_id IS NULL) AS ours,
       CASE WHEN o.boot_term = o.term THEN o.boot_id END AS boot, CASE WHEN o.boot_term = o.term THEN o.liveness END AS liveness,
       o.node AS node
  FROM (SELECT 1 AS one) x
  LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
  LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2`

// scan returns where a row of previousSQL goes.
func (p *previousHolder) scan() []any {
	return []any{&p.expired, &p.ahead, &p.ours, sqldb.ScanText(&p.boot), sqldb.ScanText(&p.liveness), sqldb.ScanText(&p.node)}
}

// rule returns by which rule the lease was taken over, and for the TTL why the
// holder's death was not seen. It is empty when the lock was free.
func (p previousHolder) rule(isOpen func(boot string) (open, known bool)) (rule, reason string) {
	switch {
	case !p.expired && p.liveness == liveness.FoundDead:
		return ruleSessionGone, ""
	case !p.expired:
		return "", ""
	case p.ahead:
		return ruleTTL, "clock-went-back"
	case p.ours && p.liveness == liveness.Released:
		return "", ""
	case !p.ours:
		return ruleTTL, "foreign"
	case p.liveness != liveness.BySession && p.liveness != liveness.ByFlock:
		return ruleTTL, "no-liveness"
	}
	switch open, known := isOpen(p.boot); {
	case open:
		return ruleTTL, "session-open"
	case !known:
		// As after an outage of the database, before our first look.
		return ruleTTL, "not-watching"
	}
	// Its death came so shortly before the end of its TTL, or before we began to
	// look, that no node has judged it.
	return ruleTTL, "not-judged"
}

// tookOver logs and counts a lease that its last holder did not release. It reports whether
// this is one.
func (l *Leases) tookOver(g lock.Grant, p previousHolder) bool {
	rule, reason := p.rule(l.isOpen)
	if rule == "" {
		return false
	}
	l.metrics.takeovers.WithLabelValues(rule).Inc()
	from := p.node
	if !p.ours {
		from = ""
	}
	log := l.log.With("lock", g.Key, "name", g.Name, "from", from, "fence", g.Fence, "rule", rule)
	if reason != "" {
		log = log.With("reason", reason)
	}
	log.Info("Lease taken over")
	return true
}
