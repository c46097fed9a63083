package lockdb

import (
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// RuleTTL is the rule by which a lease was taken over whose TTL had passed. The other one is
// [liveness.RuleSessionGone].
const RuleTTL = "ttl"

// previousHolder is the holder that an acquisition found in the place of its own rows, before
// the statement or the transaction. On PostgreSQL the rows may have changed since, and then a
// takeover goes unnoticed, or is logged twice.
type previousHolder struct {
	// expired says that a row stood in INT_LOCK whose lease had ended.
	expired bool
	// ours says that a process of ours had written it, or that there was no row.
	ours bool
	// liveness is empty where nobody sees whether the holder lives.
	liveness, node string
}

// scan returns where its columns go.
func (p *previousHolder) scan() []any {
	return []any{&p.expired, &p.ours, sqldb.ScanText(&p.liveness), sqldb.ScanText(&p.node)}
}

// rule returns by which rule the lease was taken over. It is empty when the lock was free.
func (p previousHolder) rule() string {
	switch {
	case p.expired:
		return RuleTTL
	case p.liveness == liveness.FoundDead:
		return liveness.RuleSessionGone
	}
	return ""
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
