package lockdb

import (
	"database/sql"

	"github.com/observerd/observerd/internal/lock"
)

// The rules by which a lease may be taken over from a holder that did not give
// it back.
const (
	ruleSessionGone = "session-gone"
	ruleTTL         = "ttl"
	// ruleOwnTerm is for a lease of this very process whose term has ended: its release
	// did not come through, or an older state of the database brought it back.
	ruleOwnTerm = "own-term-ended"
)

// predecessor is what an acquisition found in the place of its own rows.
type predecessor struct {
	// expired says that a row stood in INT_LOCK whose lease had ended, ahead that
	// it had because its instant lay too far in the future.
	expired, ahead bool
	// ours says that a process of ours had written it, or nobody had.
	ours bool
	// boot and liveness are empty when an older binary wrote it.
	boot, liveness, node string
}

// predecessorSQL returns the predecessor. It reads what was there before the
// statement, or the transaction, that acquires. On PostgreSQL the rows may have
// changed since, and then a takeover goes unnoticed, or is told of twice.
// {ended} is whether a row stood there whose lease had ended.
const predecessorSQL = `
SELECT {ended} AS expired, COALESCE({ahead}, FALSE) AS ahead, COALESCE(l.client_id = o.term, l.client_id IS NULL) AS ours,
       CASE WHEN o.boot_term = o.term THEN o.boot_id END AS boot, CASE WHEN o.boot_term = o.term THEN o.liveness END AS liveness,
       o.node AS node
  FROM (SELECT 1 AS one) x
  LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
  LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2`

// scan returns where a row of predecessorSQL goes.
func (p *predecessor) scan() []any {
	return []any{&p.expired, &p.ahead, &p.ours, (*text)(&p.boot), (*text)(&p.liveness), (*text)(&p.node)}
}

// text scans a string; NULL becomes the empty one.
type text string

// Scan implements sql.Scanner.
func (t *text) Scan(value any) error {
	var s sql.NullString
	err := s.Scan(value)
	*t = text(s.String)
	return err
}

// rule returns by which rule the lease was taken over, and for the TTL why the
// holder's death was not seen. It is empty when the lock was free.
func (p predecessor) rule(isOpen func(boot string) (open, known bool)) (rule, reason string) {
	switch {
	case !p.expired && p.liveness == foundDead:
		return ruleSessionGone, ""
	case !p.expired:
		return "", ""
	case p.ahead:
		return ruleTTL, "clock-went-back"
	case !p.ours:
		return ruleTTL, "foreign"
	case p.liveness != bySession && p.liveness != byFlock:
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
	// look, that nobody has judged it.
	return ruleTTL, "not-judged"
}

// tookOver tells of a lease that was not given back by its last holder.
func (l *Leases) tookOver(g lock.Grant, p predecessor) {
	rule, reason := p.rule(l.db.isOpen)
	if rule == "" {
		return
	}
	l.db.metrics.takeovers.WithLabelValues(rule).Inc()
	from := p.node
	if !p.ours {
		from = ""
	}
	log := l.db.log.With("lock", g.Key, "name", g.Name, "from", from, "fence", g.Fence, "rule", rule)
	if reason != "" {
		log = log.With("reason", reason)
	}
	log.Info("Lease taken over")
}
