package app_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/servertest"
)

func TestNodeStoresEachChangeOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		node := p.start(t)
		ready(t, node)
		op := p.operator(t)
		eventually(t, p.delivered(t, op, "stock", 20))
		before := p.stored(t)
		for range 5 {
			if err := p.warehouse.Step(t.Context(), 20); err != nil {
				t.Fatal(err)
			}
		}
		p.order(t, "LAST")
		eventually(t, p.orderStored(t, "LAST"))
		eventually(t, p.delivered(t, op, "stock", len(before["stock"])+1))
		p.checkOrders(t)
		stop(t, node)
		report, err := op.Report(t.Context())
		if err != nil || len(report.Locks) != 0 || len(report.Nodes) != 0 {
			t.Errorf("after the stop: locks %+v, nodes %+v, %v", report.Locks, report.Nodes, err)
		}
	})
}

// checkOrders compares the events with the table: one for each order.
func (p place) checkOrders(t *testing.T) {
	t.Helper()
	db := p.open(t)
	var want int
	if err := db.QueryRow(`SELECT count(*) FROM orders`).Scan(&want); err != nil {
		t.Fatal(err)
	}
	got := p.stored(t)["orders"]
	if len(got) != want {
		t.Errorf("%d events of %d orders", len(got), want)
	}
	for _, e := range got {
		if e.Type != events.TypeNewOrder || e.Change != events.ChangeNew || e.Version != 1 {
			t.Errorf("event %+v", e)
		}
	}
}

func (p place) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.folder, "warehouse.db")+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (p place) write(t *testing.T, statement string) {
	t.Helper()
	if _, err := p.open(t).ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// order writes an order of this moment.
func (p place) order(t *testing.T, id string) {
	t.Helper()
	p.write(t, `INSERT INTO orders VALUES ('`+id+`', 'c', 'NEW', 1, strftime('%Y-%m-%d %H:%M:%f', 'now'))`)
}

// orderStored complains until the sink has the event of the order.
func (p place) orderStored(t *testing.T, id string) func() error {
	return func() error {
		for _, e := range p.stored(t)["orders"] {
			if e.Subject == id {
				return nil
			}
		}
		return fmt.Errorf("order %s is not stored", id)
	}
}

func TestPagesOfANode(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	node := p.start(t)
	ready(t, node)
	if code, text := get(t, node, "/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d %s", code, text)
	}
	eventually(t, func() error {
		return page(t, node, "/metrics",
			`observerd_build_info{version="test"} 1`,
			`scheduler_observer_lock_acquired_total{type="order"}`,
			`scheduler_observer_lock_failed_total{type="order"}`,
			`scheduler_observer_polling_duration_seconds_count{type="inventory"}`,
			`scheduler_observer_polls_total{outcome="ok",type="wes"}`,
			`scheduler_observer_lock_acquired_by_node_total{node="test-node",type="order"}`,
			"scheduler_observer_cycle_duration_seconds_count", "scheduler_observer_cycle_locked_count", "scheduler_observer_cycle_skipped_count",
			"observerd_stale_commits_refused_total 0",
		)
	})
	eventually(t, func() error { return page(t, node, "/", "test-node", "orders", "stock", "tasks", "sink-file") })
}

func TestTwoNodesPollEachTurnOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		first, second := p.start(t), p.start(t)
		ready(t, first)
		ready(t, second)
		op := p.operator(t)
		eventually(t, p.delivered(t, op, "stock", 20))
		if err := p.warehouse.Step(t.Context(), 50); err != nil {
			t.Fatal(err)
		}
		p.order(t, "LAST")
		eventually(t, p.orderStored(t, "LAST"))
		stop(t, first)
		p.order(t, "ALONE") // For the node that is left.
		eventually(t, p.orderStored(t, "ALONE"))
		p.checkOrders(t)
	})
}

func TestStopIsSafeAtAnyTime(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, node *app.App){
		"before start":    func(*testing.T, *app.App) {},
		"at once":         func(_ *testing.T, node *app.App) { node.Start() },
		"when it is busy": func(t *testing.T, node *app.App) { node.Start(); ready(t, node) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, err := app.New(t.Context(), setup(t, "").options())
			if err != nil {
				t.Fatal(err)
			}
			begin(t, node)
			stop(t, node)
			stop(t, node)
			if err := node.Err(); err != nil {
				t.Errorf("after the stop: %v", err)
			}
		})
	}
}

func TestNewThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	node := p.start(t)
	taken := setup(t, "")
	taken.config.HTTP.Listen = node.Addr()
	if _, err := app.New(t.Context(), taken.options()); err == nil || wiring.FaultOf(err) != wiring.Misconfigured {
		t.Errorf("address in use: %v (fault %v)", err, wiring.FaultOf(err))
	}
	// What fails last gives back what came first: another try meets the same
	// mistake again, and not an address in use.
	late := setup(t, "")
	late.config.Observers[0].Query, late.config.Observers[0].Table, late.config.Observers[0].Key = "SELECT * FROM orders", "", nil
	err := servertest.StartOnFreePort(t.Context(), func(port int) error {
		late.config.HTTP.Listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		for range 2 {
			if _, err := app.New(t.Context(), late.options()); err == nil || !strings.Contains(err.Error(), "key is empty") {
				return fmt.Errorf("an observer without a key: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNodeWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	p := setup(t, "postgres://app:hunter2@127.0.0.1:1/observerd?sslmode=disable")
	node := p.start(t)
	eventually(t, func() error {
		code, text := get(t, node, "/readyz")
		if code != http.StatusServiceUnavailable {
			return fmt.Errorf("readyz: %d %s", code, text)
		}
		return nil
	})
	if code, text := get(t, node, "/healthz"); code != http.StatusOK {
		t.Errorf("healthz while waiting: %d %s", code, text)
	}
	select {
	case <-node.Done():
		t.Errorf("the node gave up: %v", node.Err())
	default:
	}
}

func TestNodeRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	first := p.start(t)
	ready(t, first)
	stop(t, first)
	db, err := sql.Open("sqlite", filepath.Join(p.folder, "observerd.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(`INSERT INTO obs_migration (version_id, is_applied) VALUES (9999, 1)`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	second := p.start(t)
	select {
	case <-second.Done():
	case <-ctx.Done():
		t.Fatal("the node goes on")
	}
	if err := second.Err(); wiring.FaultOf(err) != wiring.Misconfigured {
		t.Errorf("refused with %v", err)
	}
}

func TestPollOnceBesideARunningNode(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		node := p.start(t)
		ready(t, node)
		op := p.operator(t)
		if _, err := op.Pause(t.Context(), "orders", admin.By{Actor: "test"}, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := op.PollOnce(t.Context(), "orders", admin.By{Actor: "test"}); err == nil {
			t.Error("a paused observer was polled")
		}
		p.order(t, "PAUSED")
		d, err := op.DryRun(t.Context(), "orders", 0)
		if err != nil || d.EventCount == 0 || int64(len(d.Events)) != d.EventCount {
			t.Errorf("dry run: %d of %d events, %v", len(d.Events), d.EventCount, err)
		}
		if _, err := op.Resume(t.Context(), "orders", admin.By{Actor: "test"}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		eventually(t, func() error {
			_, err := op.PollOnce(t.Context(), "orders", admin.By{Actor: "test"}) // The node may hold the lock.
			return err
		})
		if took := time.Since(began); took > patience/2 {
			t.Errorf("one poll took %v", took)
		}
		eventually(t, p.delivered(t, op, "orders", int(d.EventCount)))
		p.checkOrders(t)
	})
}
