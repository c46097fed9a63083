package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/simtest"
)

// TestLateCommitsOverAFold runs writers whose transactions stay open for minutes
// beside two nodes that poll, over the hour in which the clocks go back: the
// timestamps are DATEs without a zone. No row is missed, none is repeated.
func TestLateCommitsOverAFold(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, host := range map[string]*time.Location{"a host of the same zone": berlin, "a host in UTC": time.UTC} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := "SYSDATE"
			if host != berlin {
				now = "CAST(SYSTIMESTAMP AT TIME ZONE 'Europe/Berlin' AS DATE)"
			}
			w := lateRun(t, host, berlin, now)
			w.run()
			w.check()
		})
	}
}

// late is a workload on a clock of its own.
type late struct {
	*database
	t      *testing.T
	seed   uint64
	random *rand.Rand
	clock  *fakeClock
	now    string
	nodes  []*oracle.Source
	db     *observertest.DB
	poller *observer.Observer
	open   []func()
	rows   int
	polls  int
}

func lateRun(t *testing.T, host, columns *time.Location, now string) *late {
	w := &late{t: t, seed: simtest.Seed(), now: now, db: observertest.NewDB()}
	w.random = rand.New(rand.NewPCG(w.seed, 0))
	w.clock = &fakeClock{at: time.Date(2024, 10, 26, 23, 0, 0, 0, time.UTC)}
	w.database = emulate(t, engine.Options{Now: w.clock.now, OSZone: host}).withOrders(0)
	for range 2 {
		w.nodes = append(w.nodes, w.database.open(oracle.Options{Location: columns}))
	}
	var err error
	w.poller, err = observer.New(observer.Spec{
		Stream: "orders", EventType: "Seen", Detect: observer.DetectNew, Query: orders(), ChunkRows: 10, Now: w.clock.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// run takes three hours of the clock.
func (w *late) run() {
	for range 400 {
		w.clock.set(w.clock.now().Add(time.Duration(w.random.IntN(55)) * time.Second))
		switch n := w.random.IntN(6); {
		case n < 2 && len(w.open) < 5:
			w.begin()
		case n < 4 && len(w.open) > 0:
			i := w.random.IntN(len(w.open))
			w.open[i]()
			w.open = slices.Delete(w.open, i, i+1)
		default:
			w.poll()
		}
	}
	for _, commit := range w.open {
		commit()
	}
	for range 3 {
		w.clock.set(w.clock.now().Add(time.Hour))
		w.poll()
	}
}

func (w *late) begin() {
	exec, commit := w.database.begin()
	w.rows++
	exec(fmt.Sprintf("INSERT INTO orders VALUES (%d, 'late', %s)", w.rows, w.now))
	w.open = append(w.open, commit)
}

func (w *late) poll() {
	w.t.Helper()
	w.polls++
	if _, err := w.poller.Poll(w.t.Context(), w.nodes[w.polls%2], w.db.Acquire()); err != nil {
		w.t.Fatalf("%v (seed %d)", err, w.seed)
	}
}

// check counts the events, and whether the workload was any test: a poller that
// goes on from the newest timestamp would have lost the rows that came late.
func (w *late) check() {
	seen := make(map[string]int)
	newest, behind := time.Time{}, 0
	for _, e := range w.db.Events("orders") {
		seen[e.Subject]++
		if e.Time.Before(newest) {
			behind++
		} else {
			newest = e.Time
		}
	}
	if len(seen) != w.rows || len(w.db.Events("orders")) != w.rows {
		w.t.Errorf("%d events of %d keys, want one of each of %d rows (seed %d)", len(w.db.Events("orders")), len(seen), w.rows, w.seed)
	}
	if behind < 5 {
		w.t.Errorf("%d of %d rows came late: the test proves nothing (seed %d)", behind, w.rows, w.seed)
	}
}
