package app_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/wiring"
)

// history puts rows into the orders that are older than their observer.
func (p place) history(t *testing.T, rows int) {
	t.Helper()
	p.write(t, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO orders SELECT 'OLD-' || i, 'c', 'NEW', 1, strftime('%%Y-%%m-%%d %%H:%%M:%%f', '2026-01-01', (i / 3) || ' seconds') FROM n`, rows))
}

// startsNow lets the orders begin with new rows, in small chunks.
func (p place) startsNow() { p.config.Observers[0].Start, p.config.Observers[0].ChunkSize = "now", 100 }

// TestBackfillBesideNodes interrupts a backfill again and again while two nodes
// poll the same observer, which goes on getting rows. Every row becomes one
// event, and the file sink would notice a second one.
func TestBackfillBesideNodes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		const rows = 3000
		p.startsNow()
		p.write(t, `DELETE FROM orders`)
		p.history(t, rows)
		ready(t, p.start(t))
		ready(t, p.start(t))
		op := p.operator(t)
		eventually(t, func() error {
			report, err := op.Report(t.Context())
			for _, o := range report.Observers {
				if o.ID == "orders" && !o.LastOKAt.IsZero() {
					return err
				}
			}
			return errors.Join(errors.New("orders were not polled"), err)
		})
		if n := len(p.stored(t)["orders"]); n != 0 {
			t.Fatalf("%d events of rows before the start", n)
		}
		interrupted := 0
		options := admin.BackfillOptions{Observer: "orders", By: admin.By{Actor: "test"}, Rate: 2000}
		for n := 0; ; n++ {
			p.write(t, fmt.Sprintf(`INSERT INTO orders VALUES ('LIVE-%d', 'c', 'NEW', 1, strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now'))`, n))
			done, err := p.backfillUntil(t, op, options, 700)
			if err == nil {
				if done.State != "done" || done.Rows < rows || done.Events != rows || done.Part != 1 {
					t.Errorf("the backfill ended as %+v", done)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			interrupted++
			status, err := op.BackfillStatus(t.Context(), "orders")
			if err != nil || status.State != "running" || status.Rows != done.Rows || status.Position != done.Position {
				t.Fatalf("after an interruption: %+v, %v, want %+v", status, err, done)
			}
		}
		if interrupted == 0 {
			t.Error("the backfill was never interrupted")
		}
		eventually(t, p.delivered(t, op, "orders", count(t, p.open(t), `SELECT count(*) FROM orders`)))
		p.checkOrders(t)
		again, err := op.Backfill(t.Context(), admin.BackfillOptions{Observer: "orders", By: admin.By{Actor: "test"}})
		if err != nil || again.Events != 0 || again.Rows < rows {
			t.Errorf("a second one: %+v, %v", again, err)
		}
	})
}

// backfillUntil goes on with a backfill and interrupts it after so many rows.
func (p place) backfillUntil(t *testing.T, op *admin.Operator, o admin.BackfillOptions, rows int64) (admin.Backfill, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first := int64(-1)
	o.Progress = func(b admin.Backfill) {
		if first < 0 {
			first = b.Rows
		}
		if b.Rows-first >= rows && b.State == "running" {
			cancel()
		}
	}
	return op.Backfill(ctx, o)
}

// TestBackfillYieldsToPolls holds the turns of a cluster against a backfill
// that would like to have the lock all the time. Those of a type with which it
// has nothing to do say how many this machine had time for.
func TestBackfillYieldsToPolls(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	p.startsNow()
	p.history(t, 2000)
	node := p.start(t)
	ready(t, node)
	db := p.beside(t)
	p.turns(t, db, 1)
	op := p.operator(t)
	polls := func(stream string) int {
		return count(t, db, `SELECT count(*) FROM obs_poll WHERE stream = '`+stream+`'`)
	}
	orders, others, began := polls("orders"), polls("tasks"), time.Now()
	eventually(t, func() error {
		_, err := op.Backfill(t.Context(), admin.BackfillOptions{Observer: "orders", By: admin.By{Actor: "test"}, Rate: 500})
		if err != nil && wiring.FaultOf(err) != wiring.Unavailable {
			t.Fatal(err)
		}
		return err // A database that was late: it goes on.
	})
	took := time.Since(began)
	orders, others = polls("orders")-orders, polls("tasks")-others
	if orders < (others-1)/2 || took < 2*time.Second {
		t.Errorf("%d polls in %v, of a type that nobody held up %d", orders, took, others)
	}
}

// TestReconcileFindsWhatWasBackDated covers the nightly sweep of a node: it
// begins at its time of day, goes on turn by turn and is not begun again.
func TestReconcileFindsWhatWasBackDated(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	o := &p.config.Observers[0]
	o.ReconcileAt, o.ChunkSize = time.Now().UTC().Add(-time.Minute).Format("15:04"), 100
	p.history(t, 1000)
	node := p.start(t)
	ready(t, node)
	op := p.operator(t)
	eventually(t, p.delivered(t, op, "orders", 1000))
	db := p.beside(t)
	sweeps := func(state string) int {
		return count(t, db, `SELECT count(*) FROM obs_sweep WHERE stream = 'orders' AND kind = 'reconcile' AND state = '`+state+`'`)
	}
	eventually(t, func() error {
		if sweeps("done") != 1 {
			return errors.New("no reconcile is done")
		}
		return nil
	})
	// A row below the low-water mark that no poll reads any more.
	p.write(t, `INSERT INTO orders VALUES ('BACK-DATED', 'c', 'NEW', 1, '2026-01-01 00:00:01.000')`)
	p.turns(t, db, 3)
	if n := sweeps("done") + sweeps("running"); n != 1 {
		t.Errorf("%d reconciles for one time of day", n)
	}
	if n := count(t, db, `SELECT count(*) FROM obs_event WHERE subject = 'BACK-DATED'`); n != 0 {
		t.Fatal("a poll has found a row far below the low-water mark: the test proves nothing")
	}
	// The next day.
	if _, err := db.ExecContext(t.Context(), `UPDATE obs_sweep SET started_at = strftime('%Y-%m-%d %H:%M:%f000', started_at, '-1 day')`); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if n := count(t, db, `SELECT count(*) FROM obs_event WHERE subject = 'BACK-DATED'`); n != 1 {
			return fmt.Errorf("%d events of the row", n)
		}
		return page(t, node, "/metrics", `observerd_reconcile_found_total{observer="orders"} 1`)
	})
	eventually(t, func() error {
		if n := sweeps("done"); n != 2 {
			return fmt.Errorf("%d reconciles are done", n)
		}
		return nil
	})
}

// TestReconcileLeavesWhatLiesBeforeTheStart covers an observer that begins now:
// older rows are for a backfill, however far back the reconcile may look.
func TestReconcileLeavesWhatLiesBeforeTheStart(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	p.startsNow()
	overlap := time.Second
	p.config.Observers[0].Overlap = &overlap
	p.config.Observers[0].ReconcileAt = time.Now().UTC().Add(-time.Minute).Format("15:04")
	p.write(t, `DELETE FROM orders`)
	p.history(t, 500)
	node := p.start(t)
	ready(t, node)
	db := p.beside(t)
	p.turns(t, db, 1) // The first one is the start, and the row is to come after it.
	p.order(t, "LIVE")
	eventually(t, p.delivered(t, p.operator(t), "orders", 1))
	// The low-water mark passes the row, and with it the start, within seconds.
	eventually(t, func() error {
		if count(t, db, `SELECT count(*) FROM obs_sweep WHERE stream = 'orders' AND state = 'done'`) == 0 {
			return errors.New("no reconcile is done")
		}
		return nil
	})
	if n := count(t, db, `SELECT count(*) FROM obs_event WHERE stream = 'orders'`); n != 1 {
		t.Errorf("%d events, want that of the new row", n)
	}
}

// TestResetOfAnObserverThatStartedNow holds a reset against what an observer has
// not read yet: a second start in the present would pass over that.
func TestResetOfAnObserverThatStartedNow(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	p.startsNow()
	p.write(t, `DELETE FROM orders`)
	p.history(t, 50)
	op, err := admin.NewOperator(admin.OperatorOptions{Config: p.config, Logger: slog.New(slog.DiscardHandler), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = op.Close() }()
	if _, _, err := op.Migrate(t.Context(), admin.By{}); err != nil {
		t.Fatal(err)
	}
	poll := func(want int64) {
		t.Helper()
		if polled, err := op.PollOnce(t.Context(), "orders", admin.By{Actor: "test"}); err != nil || polled.Events != want {
			t.Errorf("%d events, %v, want %d", polled.Events, err, want)
		}
	}
	poll(0)
	// It has begun yesterday, and has stood still since.
	yesterday := time.Now().UTC().Add(-24 * time.Hour).Format("2006-01-02 15:04:05.000")
	if _, err := p.beside(t).ExecContext(t.Context(), `UPDATE obs_cursor SET low_ts = $1, newest_ts = $1, start_ts = $1`, yesterday); err != nil {
		t.Fatal(err)
	}
	p.write(t, `INSERT INTO orders VALUES ('UNREAD', 'c', 'NEW', 1, strftime('%Y-%m-%d %H:%M:%f', 'now', '-2 hours'))`)
	if changed, err := op.Reset(t.Context(), "orders", admin.By{Actor: "test"}, admin.ResetOptions{}); !changed || err != nil {
		t.Fatal(changed, err)
	}
	poll(1)
}
