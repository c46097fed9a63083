package promtest

import (
	"strings"
	"testing"

	"github.com/prometheus/common/model"
)

// mutant is a rule with one mistake in it, and the story that notices it: the
// suite, and how the story's name begins. An old text of "for" stands for how
// long an alert waits.
type mutant struct{ rule, old, new, story string }

// mutants are mistakes that somebody could make in the rules.
var mutants = []mutant{
	{"observerd:poll_interval:seconds", "last_over_time(observerd_poll_interval_seconds[5m])", "observerd_poll_interval_seconds", "ObserverdNoLockAcquired: The coordination database is away, and"},
	{"observerd:poll_patience:seconds", "2 * observerd:poll_interval:seconds", "observerd:poll_interval:seconds", "ObserverdTypeNotPolled: A type that"},
	{"observerd:poll_patience:seconds", "180", "0", "ObserverdNoLockAcquired: PostgreSQL restarts for"},
	{"observerd:poll_patience:seconds", "300", "150", "ObserverdTypeNotSucceeding: One of two"},
	{"observerd:lease_patience:seconds", "observerd_lock_ttl_seconds", "0 * observerd_lock_ttl_seconds", "ObserverdLeaseWithoutProgress: The lease is"},
	{"observerd:lease_patience:seconds", "3 * observerd:poll", "0 * observerd:poll", "ObserverdLeaseWithoutProgress: A poll of"},
	{"observerd:lease_patience:seconds", "2 * sum", "0 * sum", "ObserverdLeaseWithoutProgress: Each poll of"},

	{"observerd:lock_last_acquired:timestamp_seconds", " and scheduler_observer_lock_acquired_total > 0", "", "ObserverdNoLockAcquired: The only node is killed"},
	{"observerd:lock_last_acquired:timestamp_seconds", "observerd_lock_held_seconds > 0", "observerd_lock_held_seconds > 1e9", "ObserverdNoLockAcquired: The only type"},
	{"observerd:lock_last_acquired:timestamp_seconds", "<= time() + 1", "< 0 > 0", "ObserverdNoLockAcquired: The only node is killed"},
	{"observerd:lock_last_acquired:timestamp_seconds", "[10m]", "[1d]", "ObserverdNoLockAcquired: A cluster comes"},
	{"observerd:lock_last_acquired:timestamp_seconds", "[10m]", "[1m]", "ObserverdNoLockAcquired: The only node is killed"},
	{"observerd:lock_last_acquired:timestamp_seconds", "unless on (job, type) observerd:lock_last_acquired:timestamp_seconds", "", "ObserverdNoLockAcquired: The only node is killed"},
	{"observerd:poll_last_activity:timestamp_seconds", " and scheduler_observer_lock_acquired_total > 0", "", "ObserverdTypeNotPolled: The only node"},
	{"observerd:poll_last_activity:timestamp_seconds", "observerd_lock_held_seconds > 0", "observerd_lock_held_seconds > 1e9", "ObserverdTypeNotPolled: A poll waits"},
	{"observerd:poll_last_activity:timestamp_seconds", "<= time() + 1", "< 0 > 0", "ObserverdTypeNotPolled: The only node"},
	{"observerd:poll_last_activity:timestamp_seconds", "[10m]", "[1d]", "ObserverdTypeNotPolled: A cluster comes"},
	{"observerd:poll_last_activity:timestamp_seconds", "[10m]", "[1m]", "ObserverdTypeNotPolled: The only node"},
	{"observerd:poll_last_activity:timestamp_seconds", "unless on (job, type) observerd:poll_last_activity:timestamp_seconds", "", "ObserverdTypeNotPolled: The only node"},
	{"observerd:poll_last_success:timestamp_seconds", " and observerd_poll_last_success_timestamp_seconds > 0", "", "ObserverdTypeNotSucceeding: Each first load"},
	{"observerd:poll_last_success:timestamp_seconds", "0 * observerd:observer_paused:bool", "1e9 * observerd:observer_paused:bool", "ObserverdTypeNotSucceeding: An observer was"},
	{"observerd:poll_last_success:timestamp_seconds", "+ (time() - timestamp(observerd:poll_last_success:timestamp_seconds))", "", "ObserverdTypeNotSucceeding: One observer fails"},
	{"observerd:poll_last_success:timestamp_seconds", "and on (job, type) observerd:long_turn:seconds", "", "ObserverdTypeNotSucceeding: Each first load"},
	{"observerd:poll_last_success:timestamp_seconds", "<= time() + 1", "< 0 > 0", "ObserverdTypeNotSucceeding: One observer fails"},
	{"observerd:poll_last_success:timestamp_seconds", "[10m]", "[1d]", "ObserverdTypeNotSucceeding: A cluster comes"},
	{"observerd:poll_last_success:timestamp_seconds", "[10m]", "[1m]", "ObserverdTypeNotSucceeding: Each first load"},
	{"observerd:poll_last_success:timestamp_seconds", "unless on (job, type, observer) observerd:poll_last_success:timestamp_seconds", "", "ObserverdTypeNotSucceeding: Each first load"},
	{"observerd:lease_without_progress:seconds", "observerd_lock_held_seconds >", "observerd_lock_held_seconds + 1e9 >", "ObserverdLeaseWithoutProgress: A first load"},
	{"observerd:lease_without_progress:seconds", "observerd_chunk_last_committed_age_seconds >", "observerd_chunk_last_committed_age_seconds + 1e9 >", "ObserverdLeaseWithoutProgress: A first load"},
	{"observerd:lease_without_progress:seconds", "and on (job, instance, type)", "and on (job, type)", "ObserverdLeaseWithoutProgress: A first load"},
	{"observerd:long_turn:seconds", "observerd:poll_patience:seconds / 2", "observerd:poll_patience:seconds * 1000", "ObserverdTypeNotSucceeding: One observer fails"},
	{"observerd:long_turn:seconds", "observerd:poll_patience:seconds / 2", "observerd:poll_patience:seconds / 1000", "ObserverdTypeNotSucceeding: Each first load"},
	{"observerd:long_turn:seconds", "unless on (job, instance, type) observerd:lease_without_progress:seconds", "", "ObserverdTypeNotSucceeding: A poll hangs"},
	{"observerd:observer_paused:bool", "== 1", "== 7", "ObserverdTypeNotSucceeding: An operator has"},
	{"observerd:observer_paused:bool", "== on (job, type) group_left ()", ">= on (job, type) group_left ()", "ObserverdTypeNotSucceeding: An observer was"},
	{"observerd:observer_paused:bool", "min by", "max by", "ObserverdTypeNotSucceeding: An operator has"},

	{"ObserverdNoLockAcquired", "min by (job) (observerd:poll_patience:seconds)", "max by (job) (observerd:poll_patience:seconds)", "ObserverdNoLockAcquired: They are not"},
	{"ObserverdNoLockAcquired", "max_over_time(observerd:lock_last_acquired:timestamp_seconds[1d])", "observerd:lock_last_acquired:timestamp_seconds", "ObserverdNoLockAcquired: All nodes die"},
	{"ObserverdNoLockAcquired", "present_over_time(observerd_poll_interval_seconds[5m])", "observerd_poll_interval_seconds", "ObserverdNoLockAcquired: All nodes die"},
	{"ObserverdNoLockAcquired", "present_over_time(observerd_poll_interval_seconds[5m])", "present_over_time(observerd_build_info[5m])", "ObserverdNoLockAcquired: The node that"},
	{"ObserverdNoLockAcquired", "present_over_time(observerd_poll_interval_seconds[5m])", "present_over_time(observerd_poll_interval_seconds[10m])", "ObserverdNoLockAcquired: Only a node"},
	{"ObserverdNoLockAcquired", "max_over_time(up", "min_over_time(up", "ObserverdNoLockAcquired: A fresh cluster"},
	{"ObserverdNoLockAcquired", "up offset 5m", "up", "ObserverdNoLockAcquired: Prometheus was started"},
	{"ObserverdNoLockAcquired", "observerd(-.+)?", "observerd", "ObserverdNoLockAcquired: Prometheus was started"},
	{"ObserverdNoLockAcquired", "observerd(-.+)?", ".*", "ObserverdNoLockAcquired: Prometheus was started"},
	{"ObserverdTypeNotPolled", "600", "300", "ObserverdTypeNotPolled: One of two"},
	{"ObserverdTypeNotPolled", "600", "1200", "ObserverdTypeNotPolled: One of two"},
	{"ObserverdTypeNotPolled", "clamp_min(observerd:poll_patience:seconds, 600)", "0 * observerd:poll_patience:seconds + 600", "ObserverdTypeNotPolled: A type that"},
	{"ObserverdTypeNotSucceeding", "observerd:poll_patience:seconds", "(observerd:poll_patience:seconds / 2)", "ObserverdTypeNotSucceeding: An observer was"},
	{"ObserverdTypeNotSucceeding", "observerd:poll_patience:seconds", "(0 * observerd:poll_patience:seconds + 300)", "ObserverdTypeNotSucceeding: A type that"},
	{"ObserverdTypeNotSucceeding", "and on (job, type, observer) last_over_time(observerd_poll_last_success_age_seconds[5m])", "", "ObserverdTypeNotSucceeding: The node that"},
	{"ObserverdTypeNotSucceeding", "for", "0s", "ObserverdTypeNotSucceeding: One of two observers"},
	{"ObserverdLeaseWithoutProgress", "for", "0s", "ObserverdLeaseWithoutProgress: A process was"},

	{"ObserverdLockFailureRateHigh", "observerd:lock_failure:ratio > 0.8\n", "observerd:lock_failure:ratio > 0.4\n", "ObserverdLockFailureRateHigh: Releases fail all"},
	{"ObserverdLockFailureRateHigh", "observerd:lock_failure:ratio > 0.8\n", "observerd:lock_failure:ratio > 0.95\n", "ObserverdLockFailureRateHigh: Nine of ten"},
	{"ObserverdLockFailureRateHigh", "for", "15m", "ObserverdLockFailureRateHigh-slow: Nothing is acquired"},
	{"ObserverdLockFailureRateHigh", "and observerd:poll_interval:seconds <= 150", "", "ObserverdLockFailureRateHigh-slow: A fresh cluster"},
	{"ObserverdLockFailureRateHigh", "observerd:lock_failure:ratio offset 90m > 0.8", "observerd:lock_failure:ratio > 0.8", "ObserverdLockFailureRateHigh-slow: Nothing is acquired"},
	{"ObserverdLockFailureRateHigh", "min_over_time(observerd:lock_failure:ratio[90m]) > 0.8", "min_over_time(observerd:lock_failure:ratio[90m]) > 2", "ObserverdLockFailureRateHigh-slow: Nothing is acquired"},
	{"ObserverdLockFailureRateHigh", "min_over_time(observerd:lock_failure:ratio[9h]) > 0.8", "min_over_time(observerd:lock_failure:ratio[9h]) > 2", "ObserverdLockFailureRateHigh-slow: With intervals of"},
	{"ObserverdSingleNodeAcquiring", "and on (job) observerd:nodes_expected:count >= 2", "", "ObserverdSingleNodeAcquiring: Two nodes take"},
	{"ObserverdSingleNodeAcquiring", "and on (job) sum by (job) (observerd:node_acquisitions:increase) >= 4", "", "ObserverdSingleNodeAcquiring: Two nodes, one"},
	{"ObserverdSingleNodeAcquiring", "== 1", "<= 2", "ObserverdSingleNodeAcquiring: A second node"},
	{"ObserverdSingleNodeAcquiring", "for", "5m", "ObserverdSingleNodeAcquiring: Both nodes live"},
	{"ObserverdPollingSlower", "1.2", "0.6", "ObserverdPollingSlower: Two polls wait"},
	{"ObserverdPollingSlower", "1.2", "2.4", "ObserverdPollingSlower: From one minute"},
	{"ObserverdPollingSlower", "and observerd:polling_duration_seconds:mean > 0.1 * observerd:poll_interval:seconds", "", "ObserverdPollingSlower: Polls take twice"},
	{"ObserverdPollingSlower", "for", "10m", "ObserverdPollingSlower: Two polls wait"},
	{"ObserverdSinkLag", "unless on (job, sink) sum by (job, sink) (increase(observerd_relay_delivered_events_total[5m])) > 0", "", "ObserverdSinkLag: A backfill writes"},
	{"ObserverdSinkLag", "86400", "0", "ObserverdSinkLag: The disk of"},
	{"ObserverdSinkLag", "(sum by (job, sink) (rate(observerd_relay_delivered_events_total[30m])) > 0)", "sum by (job, sink) (rate(observerd_relay_delivered_events_total[30m]))", "ObserverdSinkLag: The disk of"},
	{"ObserverdSinkLag", "sum by (job, sink) (observerd_relay_leads_count", "min by (job, sink) (observerd_relay_leads_count", "ObserverdSinkLag: A backfill writes"},
	{"ObserverdSinkLag", " and on (job, instance) observerd_poll_interval_seconds", "", "ObserverdSinkLag: All nodes are"},
	{"ObserverdSinkLag", "max by (job, sink) (observerd_relay_halted_streams) > 0", "max by (job, sink) (observerd_relay_halted_streams) > 1", "ObserverdSinkLag: One sink takes"},
	{"ObserverdSinkLag", "for", "5m", "ObserverdSinkLag: Nothing happens for"},
	{"ObserverdDeadEvents", "or (observerd_poison_rows_total unless observerd_poison_rows_total offset 30m) > 0", "", "ObserverdDeadEvents: A new node"},
	{"ObserverdDeadEvents", "unless observerd_poison_rows_total offset 30m", "", "ObserverdDeadEvents: Rows of one"},
	{"ObserverdDeadEvents", "increase(observerd_poison_rows_total[30m])", "increase(observerd_poison_rows_total[1h])", "ObserverdDeadEvents: The last one"},
	{"ObserverdLogWentBack", "or (observerd_log_went_back_total unless observerd_log_went_back_total offset 1h) > 0", "", "ObserverdLogWentBack: A node finds"},
	{"ObserverdLogWentBack", "unless observerd_log_went_back_total offset 1h", "", "ObserverdLogWentBack: It was an hour"},
	{"ObserverdLogWentBack", "increase(observerd_log_went_back_total[1h])", "increase(observerd_log_went_back_total[3h])", "ObserverdLogWentBack: It was an hour"},
	{"ObserverdStaleCommitsRefused", "[30m]", "[1h]", "ObserverdStaleCommitsRefused: It was an"},
	{"ObserverdStaleCommitsRefused", "increase(observerd_stale_commits_refused_total[30m])", "observerd_stale_commits_refused_total", "ObserverdStaleCommitsRefused: It was an"},
	{"ObserverdVersionsDiffer", "for", "30m", "ObserverdVersionsDiffer: An upgrade of"},
	{"ObserverdVersionsDiffer", "present_over_time(observerd_build_info[10m])", "observerd_build_info", "ObserverdVersionsDiffer: One of three"},
	{"ObserverdVersionsDiffer", "by (job)", "by ()", "ObserverdVersionsDiffer: One of three"},
	{"ObserverdObserverBehind", "900", "3600", "ObserverdObserverBehind: Two nodes share"},
	{"ObserverdObserverBehind", "max_over_time(observerd:observer_lag:seconds[5m])", "observerd:observer_lag:seconds", "ObserverdObserverBehind: Two nodes share"},
	{"ObserverdObserverBehind", "for", "5m", "ObserverdObserverBehind: A backlog is"},
	{"ObserverdNodePassedOver", ">= 10", ">= 1", "ObserverdNodePassedOver: Nodes share"},
	{"ObserverdNodePassedOver", "last_over_time(observerd_turns_passed_over_since_poll[5m])", "observerd_turns_passed_over_since_poll", "ObserverdNodePassedOver: One of three"},
	{"ObserverdNodePassedOver", "for", "2m", "ObserverdNodePassedOver: Nodes share"},
	{"ObserverdDefinitionsDiffer", "for", "10m", "ObserverdDefinitionsDiffer: A rolling restart"},
	{"ObserverdDefinitionsDiffer", "max_over_time(observerd_observer_outdated[5m])", "observerd_observer_outdated", "ObserverdDefinitionsDiffer: One of two"},
	{"ObserverdReloadFailed", "max_over_time(observerd_config_last_reload_success[5m])", "observerd_config_last_reload_success", "ObserverdReloadFailed: A node has"},

	{"observerd:lock_attempts:increase", "[15m]", "[1h]", "ObserverdLockFailureRateHigh: Occasional failures. In"},
	{"observerd:lock_attempts:increase", "> 150 <= 600", "> 600", "ObserverdLockFailureRateHigh-slow: Nothing is acquired"},
	{"observerd:lock_attempts:increase", "> 600 <= 3600", "> 600", "recording: Of 10 attempts"},
	{"observerd:lock_acquire_errors:increase", `{operation="acquire"}[15m]`, "[15m]", "recording: Of 10 attempts"},
	{"observerd:lock_contention:ratio", " - observerd:lock_acquire_errors:increase", "", "ObserverdLockFailureRateHigh: Releases fail all"},
	{"observerd:lock_failure:ratio", "observerd:lock_attempts:increase - observerd:lock_acquired:increase", "observerd:lock_attempts:increase", "ObserverdLockFailureRateHigh: Ten nodes with"},
	{"observerd:lock_acquire_duration_seconds:p95", "0.95", "0.5", "recording: Of 10 attempts"},
	{"observerd:node_acquisitions:increase", "> 150 <= 600", "<= 600", "ObserverdSingleNodeAcquiring: One of two"},
	{"observerd:node_acquisitions:increase", "> 600 <= 3600", "> 3600", "ObserverdSingleNodeAcquiring-slow: Two nodes poll"},
	{"observerd:nodes_live:count", "observerd_build_info unless on (job, instance) observerd_poll_interval_seconds", "observerd_build_info > 1", "ObserverdSingleNodeAcquiring: One node works"},
	{"observerd:nodes_expected:count", "observerd_build_info unless on (job, instance) observerd_poll_interval_seconds", "observerd_build_info > 1", "ObserverdSingleNodeAcquiring: One node works"},
	{"observerd:nodes_expected:count", "0.9", "1", "ObserverdSingleNodeAcquiring: A cluster of"},
	{"observerd:nodes_expected:count", `floor(quantile_over_time(0.9, observerd:nodes_live:count[1d]))`, "observerd:nodes_live:count", "ObserverdSingleNodeAcquiring: One of two"},
	{"observerd:node_share:ratio", "(observerd:node_acquisitions:increase and on (job, instance) observerd_poll_interval_seconds)\n  / on", "observerd:node_acquisitions:increase\n  / on", "recording: The balance of"},
	{"observerd:balance:score", "abs(", "(", "recording: The balance of"},
	{"observerd:balance:score", "2 - 2 /", "2 - 1 /", "recording: The balance of"},
	{"observerd:polling_slowdown:ratio", "and observerd:poll_rows:mean <= 1.2 * (observerd:poll_rows:mean offset 1h) + 1000", "", "ObserverdPollingSlower: A first load"},
	{"observerd:polling_slowdown:ratio", "offset 1h > 0", "offset 2m > 0", "ObserverdPollingSlower: From one minute"},
	{"observerd:polling_duration_seconds:mean", "[20m]", "[2h]", "ObserverdPollingSlower: Two polls wait"},
	{"observerd:polls:increase", "> 200 <= 600", "> 600", "ObserverdPollingSlower-slow: Types that are"},
	{"observerd:polls:increase", "> 600 <= 3600", "> 3600", "ObserverdPollingSlower-slow: Types that are"},
	{"observerd:polling_duration_seconds:mean", ">= 5", "> 0", "ObserverdPollingSlower: Three polls in"},
}

// of returns the rules with the mutant among them.
func (m mutant) of(t *testing.T, files []RuleFile) []RuleFile {
	t.Helper()
	done := 0
	mutated := edit(files, func(r Rule) (Rule, bool) {
		if r.Record+r.Alert != m.rule {
			return r, true
		}
		done++
		if m.old == "for" {
			wait, err := model.ParseDuration(m.new)
			if err != nil || wait == r.For {
				t.Fatalf("%s: %v", m.new, err)
			}
			r.For = wait
			return r, true
		}
		text := strings.ReplaceAll(r.Text, m.old, m.new)
		if text == r.Text {
			t.Fatalf("there is no %q in %s", m.old, r.Text)
		}
		r.Text = text
		if _, err := r.Expr().Parse(); err != nil {
			t.Fatal(err)
		}
		return r, true
	})
	if done != 1 {
		t.Fatalf("%d rules are named %s", done, m.rule)
	}
	return mutated
}

// TestRuleTestsBite makes one mistake after the other in the rules. A story that
// cannot fail is none.
func TestRuleTestsBite(t *testing.T) {
	t.Parallel()
	files, suites := shippedRules(t), readSuites(t)
	for _, m := range mutants {
		t.Run(m.rule+"/"+m.new, func(t *testing.T) {
			t.Parallel()
			if _, ok := storyOf(t, suites, m.story).passes(t, m.of(t, files)); ok {
				t.Errorf("the story %q does not notice %q in the place of %q", m.story, m.new, m.old)
			}
		})
	}
}

// storyOf returns the suite with one story alone.
func storyOf(t *testing.T, suites []suite, name string) suite {
	t.Helper()
	in, begins, _ := strings.Cut(name, ": ")
	var found []suite
	for _, s := range suites {
		for _, st := range s.Stories {
			if s.name == in && strings.HasPrefix(st.Name, begins) {
				one := s
				one.Stories = []story{st}
				found = append(found, one)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d stories are named %q", len(found), name)
	}
	return found[0]
}

// TestStoriesOfEachAlertBite lets each alert fire never, which the stories in
// which it fires have to notice, and always, which the others have to.
func TestStoriesOfEachAlertBite(t *testing.T) {
	t.Parallel()
	files, suites := shippedRules(t), readSuites(t)
	for _, alert := range alertsOf(t) {
		t.Run(alert.Alert, func(t *testing.T) {
			t.Parallel()
			broken := func(text string) []RuleFile {
				return edit(files, func(r Rule) (Rule, bool) {
					if r.Alert == alert.Alert {
						r.Text, r.For, r.Annotations = text, 0, nil
					}
					return r, true
				})
			}
			for _, s := range suites {
				if firing := s.firing(alert.Alert); s.about(alert.Alert) && len(firing.Stories) > 0 {
					if _, ok := firing.passes(t, broken("vector(0) > 1")); ok {
						t.Errorf("%s: nobody notices that it never fires", s.name)
					}
				}
				if quiet := s.quiet(alert.Alert); s.about(alert.Alert) && len(quiet.Stories) > 0 {
					if _, ok := quiet.passes(t, broken("vector(1)")); ok {
						t.Errorf("%s: nobody notices that it always fires", s.name)
					}
				}
			}
		})
	}
}
