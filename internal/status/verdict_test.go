package status_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/status"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// sound is a report of which nothing is to be said.
func sound() status.Report {
	return status.Report{
		At:        now,
		Nodes:     []status.Node{{Name: "a", Version: "v1", ConfigHash: "x", SeenAt: now}, {Name: "b", Version: "v1", ConfigHash: "x", SeenAt: now}},
		Observers: []status.Observer{{ID: "orders", State: status.StateActive, Events: 3, Live: 3}},
		Sinks:     []status.Sink{{Sink: "file", Stream: "orders", Offset: 3, Last: 3}, {Sink: "file", Stream: "stock", Offset: 3, Last: 3}},
	}
}

// TestVerdict has one thing go wrong at a time, and then several.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wrong func(r *status.Report)
		want  []string
	}{
		"nothing":                      {func(*status.Report) {}, nil},
		"no node":                      {func(r *status.Report) { r.Nodes = nil }, []string{"failing cluster: no node has written its heartbeat"}},
		"a node is gone":               {func(r *status.Report) { r.Nodes[1].Gone = true }, []string{"degraded node b: it died; the others have taken over"}},
		"all nodes are gone":           {func(r *status.Report) { r.Nodes = r.Nodes[:1]; r.Nodes[0].Gone = true }, []string{"failing cluster: no node has written its heartbeat", "degraded node a: it died\n"}},
		"a source cannot be reached":   {func(r *status.Report) { r.Nodes[0].Unreachable = []string{"wms"} }, []string{"degraded node a: it cannot reach wms"}},
		"a definition differs":         {func(r *status.Report) { r.Nodes[0].Outdated = []string{"orders"} }, []string{"degraded node a: it does not poll orders"}},
		"versions differ":              {func(r *status.Report) { r.Nodes[0].Version = "v2" }, []string{"degraded cluster: its nodes have different versions"}},
		"configurations differ":        {func(r *status.Report) { r.Nodes[0].ConfigHash = "y" }, []string{"degraded cluster: its nodes have different configurations"}},
		"a gone node had another":      {func(r *status.Report) { r.Nodes[0].Gone, r.Nodes[0].Version = true, "v2" }, []string{"degraded node a: it died"}},
		"an observer fails":            {func(r *status.Report) { r.Observers[0].LastError = "refused: no right" }, []string{"failing observer orders: refused: no right"}},
		"a reconcile is refused":       {func(r *status.Report) { r.Observers[0].Refusal = "column was added" }, []string{"degraded observer orders: it has refused, until an operator accepts it: column was added"}},
		"an observer that is off":      {func(r *status.Report) { r.Observers[0].LastError, r.Observers[0].State = "x", status.StateDisabled }, nil},
		"an observer that is paused":   {func(r *status.Report) { r.Observers[0].LastError, r.Observers[0].State = "x", status.StatePaused }, nil},
		"an observer that was removed": {func(r *status.Report) { r.Observers[0].Dead, r.Observers[0].State = 3, status.StateRemoved }, nil},
		"some poison":                  {func(r *status.Report) { r.Observers[0].Dead = 2 }, []string{"degraded observer orders: 2 rows could not become"}},
		"only poison": {func(r *status.Report) {
			r.Observers[0] = status.Observer{ID: "orders", State: status.StateActive, Dead: 3}
		},
			[]string{"failing observer orders: no row that it reads can become an event"}},
		"only poison of late": {func(r *status.Report) {
			r.Observers[0].Dead, r.Observers[0].Recent = 3, status.Recent{Polls: 2, Rows: 3, Poison: 3}
		},
			[]string{"failing observer orders: no row that it reads can become an event"}},
		"locks are held for too long": {func(r *status.Report) {
			r.Locks = []status.Lock{
				{Name: "lock:exclusive:page:reading:1", AcquiredAt: now.Add(-time.Hour), MaxHold: time.Minute},
				{Name: "lock:exclusive:page:reading:2", AcquiredAt: now.Add(-time.Hour), MaxHold: 2 * time.Hour},
				{Name: "lock:exclusive:page:reading:3", AcquiredAt: now.Add(-2 * time.Hour)},
				{Name: "lock:exclusive:page:reading:4", AcquiredAt: now.Add(-2 * time.Hour), MaxHold: time.Hour},
			}
		}, []string{"degraded lock lock:exclusive:page:reading:4: it is held for longer than the max-hold of its policy, 1h0m0s (2 locks in all)"}},
		"types have no turns": {func(r *status.Report) {
			r.Overdue = []status.Overdue{{Type: "order", Since: now}, {Type: "wes", Since: now.Add(-time.Minute)}}
		}, []string{"failing type wes: its turn is due, and no node takes it: the nodes cannot take its lock, or do not go on; so it is with 1 other type"}},
		"an observer is behind": {func(r *status.Report) { r.Observers[0].Lag = time.Hour }, []string{"degraded observer orders: its polls leave rows unread"}},
		"a sink fails": {func(r *status.Report) {
			for i := range r.Sinks {
				r.Sinks[i].LastError, r.Sinks[i].FailedAt = "disk full", now.Add(-time.Minute)
			}
		}, []string{"failing sink file: disk full"}},
		"a sink is behind":       {func(r *status.Report) { r.Sinks[1].Lag = time.Hour }, []string{"degraded sink file: events wait"}},
		"a sink that is paused":  {func(r *status.Report) { r.Sinks[1].Lag, r.Sinks[1].Pause = time.Hour, &status.Pause{} }, nil},
		"events are parked":      {func(r *status.Report) { r.Parked = []status.Parked{{Sink: "file", Events: 3}} }, []string{"degraded sink file: 3 events are parked"}},
		"an account was refused": {func(r *status.Report) { r.Accounts = []status.Account{{ID: "wms", Reason: "28P01"}} }, []string{"failing account wms: the source has refused it"}},
		"the log went back":      {func(r *status.Report) { r.WentBack = []status.WentBack{{Detail: "7 is gone"}} }, []string{"degraded event log: it went back"}},
		"several": {func(r *status.Report) { r.Nodes[0].Gone, r.Observers[0].LastError = true, "x" },
			[]string{"failing observer orders: x", "degraded node a: it died"}},
	} {
		r := sound()
		c.wrong(&r)
		v := r.Judge()
		var got []string
		for _, a := range v.Attention {
			got = append(got, fmt.Sprintf("%s %s: %s", a.Level, a.What, a.Why))
			if _, err := os.Stat(filepath.Join("../../docs/runbooks", a.Runbook+".md")); a.Runbook != "" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		same := len(got) == len(c.want)
		for i := range got {
			same = same && strings.HasPrefix(got[i]+"\n", c.want[i]) // With a line feed it is the whole text.
		}
		worst := status.LevelOK
		if len(c.want) > 0 {
			worst = status.Level(strings.Fields(c.want[0])[0])
		}
		for _, a := range v.Attention {
			same = same && a.Command != "" && a.Runbook != ""
		}
		if !same || v.Level != worst {
			t.Errorf("%s: %s, %q, want %q", name, v.Level, got, c.want)
		}
	}
}

// TestAttentionHasATimeAndACommand has what began at a known time, and a poll that waits to be accepted.
func TestAttentionHasATimeAndACommand(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		wrong   func(r *status.Report)
		since   time.Time
		command string
	}{
		"no node, and none known": {func(r *status.Report) {
			r.Nodes, r.Types = nil, []status.Type{{TurnAt: ago(time.Hour)}, {TurnAt: ago(time.Minute)}}
		}, ago(time.Minute), "systemctl status observerd"},
		"versions differ": {func(r *status.Report) {
			r.Nodes[0].StartedAt, r.Nodes[1].StartedAt, r.Nodes[1].Version = ago(time.Hour), ago(time.Minute), "v2"
		}, ago(time.Minute), "observerd doctor"},
		"poison": {func(r *status.Report) { r.Observers[0].Dead, r.Observers[0].DeadSince = 1, ago(time.Hour) }, ago(time.Hour), "observerd dead list --observer orders"},
		"a poll is refused": {func(r *status.Report) {
			r.Observers[0].Refusal, r.Observers[0].LastError, r.Observers[0].LastOKAt = "8 of 8 rows are gone", "refused: 8 of 8 rows are gone", ago(time.Hour)
		}, ago(time.Hour), "observerd observers accept orders"},
		"a failure after a refusal": {func(r *status.Report) {
			r.Observers[0].Refusal, r.Observers[0].LastError = "8 of 8 rows are gone", "connection refused"
		}, time.Time{}, "observerd observers show orders"},
	} {
		r := sound()
		c.wrong(&r)
		if v := r.Judge(); len(v.Attention) != 1 || !v.Attention[0].Since.Equal(c.since) || v.Attention[0].Command != c.command {
			t.Errorf("%s: %+v", name, v.Attention)
		}
	}
}
