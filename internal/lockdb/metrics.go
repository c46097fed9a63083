package lockdb

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/observerd/observerd/internal/lockdb/liveness"
)

// RuleTTL is the rule by which a lease was taken over whose TTL had passed. The other one is
// [liveness.RuleSessionGone].
const RuleTTL = "ttl"

// metrics count what the coordination database refused or had to find out.
type metrics struct {
	staleCommits   prometheus.Counter
	conflicts      prometheus.Counter
	unknownCommits *prometheus.CounterVec
	endedSessions  prometheus.Counter
	logWentBack    prometheus.Counter
	cleaned        *prometheus.CounterVec
	takeovers      *prometheus.CounterVec
	liveness       prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	made := promauto.With(reg)
	m := &metrics{
		staleCommits: made.NewCounter(prometheus.CounterOpts{
			Name: "observerd_stale_commits_refused_total",
			Help: "Commits that were refused because the lease had ended before they arrived.",
		}),
		conflicts: made.NewCounter(prometheus.CounterOpts{
			Name: "observerd_commit_conflicts_total",
			Help: "Commits that were refused because the cursor had moved: a pause, a reset or another poller came first.",
		}),
		unknownCommits: made.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_unknown_commits_resolved_total",
			Help: "Commits whose answer was lost, by what was found out afterwards.",
		}, []string{"outcome"}),
		endedSessions: made.NewCounter(prometheus.CounterOpts{
			Name: "observerd_stalled_sessions_ended_total",
			Help: "Database sessions of stopped nodes that were ended because they stood in the way of a commit.",
		}),
		logWentBack: made.NewCounter(prometheus.CounterOpts{
			Name: "observerd_log_went_back_total",
			Help: "Times that this node has found the event log in an earlier state than it knew.",
		}),
		cleaned: made.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_janitor_deleted_rows_total",
			Help: "Rows that the janitor removed, by table.",
		}, []string{"table"}),
		takeovers: made.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_takeovers_total",
			Help: "Locks acquired after a holder that did not give them back, by the rule that allowed it.",
		}, []string{"rule"}),
		liveness: made.NewGauge(prometheus.GaugeOpts{
			Name: "observerd_liveness_active",
			Help: "1 while other nodes can see whether this one lives; 0 while only the TTL ends its leases.",
		}),
	}
	for _, rule := range []string{liveness.RuleSessionGone, RuleTTL} {
		m.takeovers.WithLabelValues(rule)
	}
	for _, outcome := range []string{"committed", "aborted"} {
		m.unknownCommits.WithLabelValues(outcome)
	}
	for _, table := range []string{
		"int_lock", "obs_audit", "obs_dead", "obs_event", "obs_hold", "obs_lock", "obs_lock_failure", "obs_node", "obs_poll", "obs_sink_offset", "obs_sweep", "obs_wait",
	} {
		m.cleaned.WithLabelValues(table)
	}
	return m
}
