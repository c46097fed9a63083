package wiring_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wiring"
)

// TestUnpolledObservers has observers that no live node polls: the only node of their type is
// gone, or defines them in another way.
func TestUnpolledObservers(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Scheduler: config.Scheduler{Types: map[string]config.Settings{}}}
	for _, typ := range []string{"order", "stock"} {
		settings := config.Settings{}
		settings.Enabled, settings.FixedDelay = true, 30*time.Second
		cfg.Scheduler.Types[typ] = settings
	}
	cfg.Observers = []config.Observer{
		{ID: "orders", Type: "order", Enabled: true},
		{ID: "outdated", Type: "order", Enabled: true},
		{ID: "paused", Type: "stock", Enabled: true},
		{ID: "stock", Type: "stock", Enabled: true},
	}
	r := status.Report{
		At:        time.Now(),
		Nodes:     []status.Node{{Name: "a", Types: []string{"order"}, Outdated: []string{"outdated"}}, {Name: "b", Types: []string{"stock"}, Gone: true}},
		Observers: []status.Observer{{ID: "paused", State: status.StatePaused, Pause: &status.Pause{}}, {ID: "stock", State: status.StateBackoff, LastError: "query: no table"}},
	}
	wiring.Describe(cfg, &r)
	var states, needs []string
	for _, o := range r.Observers {
		states = append(states, o.State)
	}
	for _, a := range r.Verdict.Attention {
		if strings.Contains(a.Why, "no live node polls it") {
			needs = append(needs, a.What+": "+a.Command)
		}
	}
	if got, want := fmt.Sprint(states), "[active unpolled paused unpolled]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(needs), "[observer outdated: observerd reload observer stock: observerd reload]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// Without any node there is one thing to do, not one for each observer.
	r.Nodes = nil
	wiring.Describe(cfg, &r)
	for _, a := range r.Verdict.Attention {
		if strings.Contains(a.Why, "no live node polls it") {
			t.Errorf("%s needs attention beside the cluster", a.What)
		}
	}
}

// TestShardsAreDescribed has nodes that poll two of four shards, at intervals of their own.
func TestShardsAreDescribed(t *testing.T) {
	t.Parallel()
	cfg := new(config.Config)
	settings := config.Settings{Shards: 4}
	settings.Enabled, settings.FixedDelay = true, 30*time.Second
	cfg.Scheduler.Types = map[string]config.Settings{"order": settings}
	for i := range 40 {
		cfg.Observers = append(cfg.Observers, config.Observer{ID: fmt.Sprintf("orders-%02d", i), Type: "order", Enabled: true})
	}
	polled := []string{"order#1", "order#4"}
	r := status.Report{
		At:    time.Now(),
		Nodes: []status.Node{{Name: "a", Types: polled, Intervals: map[string]time.Duration{polled[0]: 10 * time.Second, polled[1]: 10 * time.Second}}},
		Types: []status.Type{{Name: polled[0], TurnAt: time.Now()}},
	}
	wiring.Describe(cfg, &r)
	states := make(map[string]int)
	for i, o := range r.Observers {
		want := status.StateUnpolled
		if slices.Contains(polled, cfg.ShardOf(cfg.Observers[i])) {
			want = status.StateActive
		}
		if states[o.State]++; o.State != want || o.Interval != 10*time.Second || o.NextPollAt.IsZero() == (want == status.StateActive) {
			t.Errorf("%s of %s: %+v, want %s", o.ID, cfg.ShardOf(cfg.Observers[i]), o, want)
		}
	}
	if len(states) != 2 {
		t.Errorf("got %v", states)
	}
	if shard := r.Types[0]; shard.Interval != 10*time.Second || shard.NextAt.IsZero() {
		t.Errorf("got %+v", shard)
	}
}

// TestTypesWithoutTurnsAreOverdue has a type whose last turn is long ago, with a lease that ends
// after a minute.
func TestTypesWithoutTurnsAreOverdue(t *testing.T) {
	t.Parallel()
	settings := config.Settings{}
	settings.Enabled, settings.FixedDelay, settings.Lock.TTL = true, time.Second, time.Minute
	cfg := &config.Config{
		Scheduler: config.Scheduler{Types: map[string]config.Settings{"order": settings}},
		Observers: []config.Observer{{ID: "orders", Type: "order", Enabled: true}},
	}
	now := time.Now().Truncate(time.Second)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tc := range map[string]struct {
		change  func(r *status.Report)
		overdue bool
	}{
		"for long":            {func(*status.Report) {}, true},
		"never polled":        {func(r *status.Report) { r.Types = nil }, true},
		"a turn a moment ago": {func(r *status.Report) { r.Types[0].TurnAt = ago(time.Minute) }, false},
		"its nodes are new":   {func(r *status.Report) { r.Nodes[0].StartedAt = ago(time.Minute) }, false},
		"no node polls it":    {func(r *status.Report) { r.Nodes[0].Types = nil }, false},
		"its node has died":   {func(r *status.Report) { r.Nodes[0].Gone = true }, false},
		"an observer fails":   {func(r *status.Report) { r.Observers = []status.Observer{{ID: "orders", LastError: "unreachable"}} }, false},
		"a paused observer failed": {func(r *status.Report) {
			r.Observers = []status.Observer{{ID: "orders", LastError: "unreachable", Pause: &status.Pause{}}}
		}, true},
		"a long turn has ended":      {func(r *status.Report) { r.Types[0].FinishedAt = ago(time.Second) }, false},
		"its lock may not be listed": {func(r *status.Report) { r.MoreLocks = 1 }, false},
		"a turn is under way": {func(r *status.Report) {
			r.Locks = []status.Lock{{Name: "order-observer-poll", Holder: "a", Left: time.Second}}
		}, false},
		"the lease of a turn has ended": {func(r *status.Report) { r.Locks = []status.Lock{{Name: "order-observer-poll", Holder: "a"}} }, true},
		"a stranger has the lock":       {func(r *status.Report) { r.Locks = []status.Lock{{Name: "order-observer-poll", Left: time.Hour}} }, true},
	} {
		r := status.Report{
			At: now, Types: []status.Type{{Name: "order", TurnAt: ago(time.Hour)}},
			Nodes: []status.Node{{Name: "a", Types: []string{"order"}, StartedAt: ago(2 * time.Hour)}},
		}
		tc.change(&r)
		wiring.Describe(cfg, &r)
		if got := len(r.Overdue) == 1; got != tc.overdue {
			t.Errorf("%s: overdue %v, want %t", name, r.Overdue, tc.overdue)
		}
	}
}

// TestObserversAreDescribed has one that the configuration has not, one that was polled, and
// one that was not.
func TestObserversAreDescribed(t *testing.T) {
	t.Parallel()
	const many = 3
	cfg, r := new(config.Config), status.Report{At: time.Now(), Nodes: []status.Node{{Name: "a", Types: []string{"order"}}}}
	cfg.Scheduler.Types = map[string]config.Settings{"order": {}}
	settings := cfg.Scheduler.Types["order"]
	settings.Enabled, settings.FixedDelay = true, 30*time.Second
	cfg.Scheduler.Types["order"] = settings
	for i := range many {
		id := fmt.Sprintf("orders-%04d", i)
		r.Observers = append(r.Observers, status.Observer{ID: id, State: status.StateBackoff})
		if i > 0 {
			cfg.Observers = append(cfg.Observers, config.Observer{ID: id, Type: "order", Enabled: true})
		}
	}
	cfg.Observers = append(cfg.Observers, config.Observer{ID: "stock", Type: "order", Enabled: true})
	wiring.Describe(cfg, &r)
	for i, want := range map[int]string{0: status.StateRemoved, 1: status.StateBackoff, many: status.StateActive} {
		if o := r.Observers[i]; o.State != want || o.NextPollAt.IsZero() != (want == status.StateRemoved) {
			t.Errorf("%s is %s, polled next at %s", o.ID, o.State, o.NextPollAt)
		}
	}
}

// TestLocksOfAPolicy has locks that policies bound by subject, predicate and mode, and locks
// that they do not.
func TestLocksOfAPolicy(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Locks: config.Locks{Policies: []config.LockPolicy{
		{ID: "pages", Subject: "page", MaxHold: time.Hour},
		{ID: "reading", Subject: "page", Predicate: "reading", Mode: "exclusive", MaxHold: time.Minute},
		{ID: "all", MaxHold: 2 * time.Hour},
		{ID: "ttl", MaxTTL: time.Second},
	}}}
	r := status.Report{Locks: []status.Lock{
		{Subject: "page", Predicate: "reading", Mode: "exclusive"}, {Subject: "page", Predicate: "reading", Mode: "shared"}, {Subject: "audit"}, {Key: "order-observer-poll"},
	}}
	wiring.Describe(cfg, &r)
	var got []time.Duration
	for _, l := range r.Locks {
		got = append(got, l.MaxHold)
	}
	if want := "[1m0s 1h0m0s 2h0m0s 0s]"; fmt.Sprint(got) != want {
		t.Errorf("the bounds are %v, want %s", got, want)
	}
}

// TestIntervalsOfTheNodes has nodes that poll at another interval than the command knows.
func TestIntervalsOfTheNodes(t *testing.T) {
	t.Parallel()
	settings := config.Settings{}
	settings.Enabled, settings.FixedDelay = true, 30*time.Second
	cfg := &config.Config{
		Scheduler: config.Scheduler{Types: map[string]config.Settings{"order": settings}},
		Observers: []config.Observer{{ID: "orders", Type: "order", Enabled: true}, {ID: "rare", Type: "order", Enabled: true, FixedDelay: time.Minute}},
	}
	r := status.Report{
		At:    time.Now(),
		Types: []status.Type{{Name: "order"}},
		Nodes: []status.Node{
			{Name: "a", Types: []string{"order"}, Intervals: map[string]time.Duration{"order": 3 * time.Second, "other": time.Second}},
			{Name: "b", Types: []string{"order"}, Gone: true, Intervals: map[string]time.Duration{"order": time.Hour}},
		},
	}
	wiring.Describe(cfg, &r)
	got := []time.Duration{r.Types[0].Interval, r.Observers[0].Interval, r.Observers[1].Interval}
	if want := "[3s 3s 1m0s]"; fmt.Sprint(got) != want {
		t.Errorf("the intervals are %v, want %s", got, want)
	}
	if next := r.Types[0].NextAt.Sub(r.At); next < 0 || next > 3*time.Second {
		t.Errorf("the next turn is in %s", next)
	}
	if cfg.Scheduler.Types["order"].FixedDelay != 30*time.Second {
		t.Error("the configuration itself has changed")
	}
}
