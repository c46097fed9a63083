//go:build nightly

package cluster_test

import (
	"context"
	"testing"

	"github.com/observerd/observerd/test/kit/pgtest"
)

// lag makes the standby receive nothing more.
func (p *pair) lag(t *testing.T) {
	t.Helper()
	says(t, p.standby, `ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`)
	remember(t, p.standby.URL("postgres")).becomes(t, `SELECT (count(*) = 0)::int FROM pg_stat_wal_receiver`)
}

// TestFailoverToALaggingStandby takes back what was committed since the standby
// lagged, as a restore of a backup does. What the source still has is told again, and
// no event of the new log is missing in the file.
func TestFailoverToALaggingStandby(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	source := openPostgres(t)
	h := newHost(t, p.memory, source.url)
	nodes := []*daemon{h.start(t, "a", settings{}).ready(t), h.start(t, "b", settings{}).ready(t)}
	quiet := source.busy(t)
	grows(t, p.memory)
	p.lag(t)
	for range 5 {
		grows(t, p.memory)
	}
	down(t, p.primary, pgtest.Immediate)
	p.promote(t)
	for _, d := range nodes {
		d.ready(t)
	}
	grows(t, p.memory)
	quiet()
	checkDelivered(t, p.memory, h.sink(), source.rows(t))
	var said int
	for _, d := range nodes {
		said += d.Log.Count("Event log went back", `"level":"ERROR"`)
	}
	if said == 0 {
		t.Error("no node said that the log went back")
	}
}

// TestSplitBrain has two primaries for a while: one node works with each, then both
// with the one that was promoted.
func TestSplitBrain(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	source := openPostgres(t)
	h := newHost(t, p.memory, source.url)
	former := h.start(t, "a", settings{}).ready(t)
	quiet := source.busy(t)
	grows(t, p.memory)
	p.promote(t)
	promoted := remember(t, bothHosts(t, p.standby, p.primary))
	other := h.start(t, "b", settings{database: promoted.url}).ready(t)
	for range 3 {
		grows(t, p.memory)
		grows(t, promoted)
	}
	down(t, p.primary, pgtest.Immediate)
	former.ready(t)
	other.ready(t)
	grows(t, promoted)
	quiet()
	checkDelivered(t, promoted, h.sink(), source.rows(t))
}

// failback makes the former primary a synchronous standby of the present one.
func (p *pair) failback(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p.primary, p.standby = p.standby, p.primary
	if err := p.standby.Rejoin(ctx, p.primary); err != nil {
		t.Fatal(err)
	}
	p.waitsFor(t)
}

// TestFailoversToAndFro promotes a new synchronous standby five times.
func TestFailoversToAndFro(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.waitsFor(t)
	source := openPostgres(t)
	h := newHost(t, p.memory, source.url)
	nodes := []*daemon{h.start(t, "a", settings{}).ready(t), h.start(t, "b", settings{}).ready(t)}
	quiet := source.busy(t)
	for range 5 {
		grows(t, p.memory)
		down(t, p.primary, pgtest.Immediate)
		p.promote(t)
		for _, d := range nodes {
			d.ready(t)
		}
		grows(t, p.memory)
		p.failback(t)
	}
	quiet()
	checkHistory(t, p.memory, h.sink(), source.rows(t))
}
