package app_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/wiring"
)

// narrow starts a node whose configuration was loaded just now, and names other
// columns of the stock than that of the place. Its node has that name.
func (p place) narrow(t *testing.T, name string) *app.App {
	t.Helper()
	return p.changed(t, name, func(o *config.Observer) {
		if o.ID == "stock" {
			o.Columns = []string{"warehouse", "sku"}
		}
	})
}

// changed starts a node of that name whose configuration was loaded just now, and changes
// the observers.
func (p place) changed(t *testing.T, name string, change func(o *config.Observer)) *app.App {
	t.Helper()
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{filepath.Join(p.folder, "config.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range cfg.Observers {
		change(&cfg.Observers[i])
	}
	cfg.Node.Name = name
	p.config = cfg
	return p.start(t)
}

// versions is the highest version among the events of the stock.
func (p place) versions(t *testing.T) (highest int64) {
	t.Helper()
	for _, e := range p.stored(t)["stock"] {
		highest = max(highest, e.Version)
	}
	return highest
}

// TestNodesWithAndWithoutTheKeyWritten has nodes one of which leaves out the keys that the
// other writes: they are one cluster, and no row is another for the one than for the other.
func TestNodesWithAndWithoutTheKeyWritten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		written := p.start(t)
		ready(t, written)
		op := p.operator(t)
		eventually(t, p.delivered(t, op, "stock", 20))
		ready(t, p.changed(t, "without", func(o *config.Observer) { o.Key = nil }))
		for i := range 4 {
			id := fmt.Sprintf("TURN-%d", i)
			p.order(t, id)
			eventually(t, p.orderStored(t, id))
		}
		report, err := op.Report(t.Context())
		if err != nil || len(report.Nodes) != 2 {
			t.Fatalf("nodes %+v, %v", report.Nodes, err)
		}
		for _, n := range report.Nodes {
			if len(n.Outdated) > 0 {
				t.Errorf("node %s leaves %q to others", n.Name, n.Outdated)
			}
		}
		stop(t, written)
		p.order(t, "ALONE")
		eventually(t, p.orderStored(t, "ALONE"))
		if v := p.versions(t); v != 1 {
			t.Errorf("rows have up to %d versions, want 1", v)
		}
		p.checkOrders(t)
	})
}

// TestNodesThatDefineAnObserverDifferently has two configurations in one cluster.
// Each of the nodes would take the rows that the other has observed for changed.
func TestNodesThatDefineAnObserverDifferently(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		wide := p.start(t)
		ready(t, wide)
		op := p.operator(t)
		eventually(t, p.delivered(t, op, "stock", 20))
		rows := len(p.stored(t)["stock"])

		// outdated complains until those nodes leave the stock alone, and have told so.
		outdated := func(want ...string) {
			t.Helper()
			eventually(t, func() error {
				report, err := op.Report(t.Context())
				if err != nil {
					return err
				}
				var told []string
				for _, n := range report.Nodes {
					if slices.Equal(n.Outdated, []string{"stock"}) {
						told = append(told, n.Name)
					}
				}
				if !slices.Equal(told, want) {
					return fmt.Errorf("outdated are %q, want %q", told, want)
				}
				return nil
			})
		}
		// The narrow one was loaded later: its definition becomes the cluster's, once.
		narrow := p.narrow(t, "narrow")
		ready(t, narrow)
		outdated("test-node")
		eventually(t, p.delivered(t, op, "stock", 2*rows))
		p.order(t, "BETWEEN")
		eventually(t, p.orderStored(t, "BETWEEN"))
		if v := p.versions(t); v != 2 {
			t.Errorf("rows have up to %d versions, want 2", v)
		}
		eventually(t, func() error {
			return page(t, wide, "/metrics", `observerd_observer_outdated{observer="stock",type="inventory"} 1`)
		})
		if err := page(t, narrow, "/metrics", `observerd_observer_outdated{observer="stock",type="inventory"} 0`); err != nil {
			t.Error(err)
		}
		if _, err := op.PollOnce(t.Context(), "stock", lockdb.By{Actor: "test"}); err == nil {
			t.Error("a command polls by another definition than the nodes")
		}

		// The former one comes back with a restart.
		stop(t, wide)
		if err := p.reload(); err != nil {
			t.Fatal(err)
		}
		ready(t, p.start(t))
		outdated("narrow")
		eventually(t, p.delivered(t, op, "stock", 3*rows))
		p.order(t, "LAST")
		eventually(t, p.orderStored(t, "LAST"))
		if v := p.versions(t); v != 3 {
			t.Errorf("rows have up to %d versions, want 3", v)
		}
		p.checkOrders(t)
	})
}

// reload reads the configuration of the place again, as a restart does.
func (p *place) reload() (err error) {
	p.config, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{filepath.Join(p.folder, "config.yaml")}})
	return err
}
