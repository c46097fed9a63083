package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// TestPollsThroughFaults lets two nodes poll in turns while rows are written,
// and ends nearly every poll in its middle in another way. Each row becomes one
// event in the end.
func TestPollsThroughFaults(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(200)
	nodes := []*oracle.Source{d.open(oracle.Options{Node: "a", FetchSize: 20}), d.open(oracle.Options{Node: "b", FetchSize: 20})}
	db := observertest.NewDB()
	o, err := observer.New(observer.Spec{Stream: "orders", EventType: "Seen", Detect: observer.DetectNew, Query: orders(), ChunkRows: 30})
	if err != nil {
		t.Fatal(err)
	}
	faults := []struct {
		fault oratest.Fault
		class observer.Class
	}{
		{oratest.Fail(1555), observer.ClassRetry}, {oratest.Fault{Then: oratest.Cut}, observer.ClassUnreachable},
		{oratest.Fault{Then: oratest.Reset}, observer.ClassRetry}, {oratest.Fault{Then: oratest.Kill}, observer.ClassKilled},
		{oratest.Fault{Hang: true}, ""}, {oratest.Fail(600), observer.ClassDriver},
	}
	killed := errors.New("this node is gone")
	rows := 200
	for i := range 3 * len(faults) {
		f := faults[i%len(faults)]
		f.fault.At, f.fault.Skip, f.fault.Times = oratest.Fetching, i/2, 1
		trap := d.server.On(theRead, f.fault)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			select {
			case <-trap.Reached():
				if f.class == "" {
					cancel(killed)
				}
			case <-ctx.Done():
			}
		}()
		_, err := o.Poll(ctx, nodes[i%2], db.Acquire())
		cancel(nil)
		trap.Release()
		if trap.Hits() > 0 && (observer.ClassOf(err) != f.class || f.class == "" && !errors.Is(err, killed)) {
			t.Errorf("poll %d: %v, want class %q", i, err, f.class)
		}
		rows++
		d.exec(fmt.Sprintf("INSERT INTO orders VALUES (%d, 'late', SYSDATE)", rows))
	}
	for _, s := range nodes {
		if _, err := o.Poll(t.Context(), s, db.Acquire()); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[string]int)
	for _, e := range db.Events("orders") {
		seen[e.Subject]++
	}
	if len(seen) != rows || len(db.Events("orders")) != rows {
		t.Errorf("%d events of %d keys, want one of each of %d rows", len(db.Events("orders")), len(seen), rows)
	}
}

// A poll without news costs three statements: who and since when, what, and rows. Each has a round
// trip that closes its cursor.
func TestQuietPoll(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(100)
	before := 0
	sourcetest.QuietPolls(t, d.open(oracle.Options{}), orders(), 6, 3, func() sourcetest.Sent {
		trips := d.server.RoundTrips()
		defer func() { before = trips }()
		return sourcetest.Sent{Trips: trips - before, Statements: d.seen.taken()}
	})
}
