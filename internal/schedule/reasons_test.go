package schedule_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

// TestFailingIsToldByAllNodes has a source that refuses a query. The node that did not meet
// it learns of it in its next turn, and each node has one series.
func TestFailingIsToldByAllNodes(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		refused := fmt.Errorf("read: %w", &observer.Fault{Class: observer.ClassQuery, Err: errors.New("no right")})
		a := start(t, db, "a", only("order"), does("order-1", fails(refused)))
		pass(interval / 2)
		equal(t, "failing", a.metric(t, "observerd_observer_failing{observer=order-1,reason=query,type=order}"), 1)
		equal(t, "series", a.series(t, "observerd_observer_failing"), 1)
		a.stop(t)
		b := start(t, db, "b", only("order"), does("order-1", fails(errors.New("too many"))))
		equal(t, "failing before a turn", b.metric(t, "observerd_observer_failing{observer=order-1,reason=,type=order}"), 0)
		pass(interval)
		if b.polls("order-1") > 0 {
			t.Error("the second node has polled it in the backoff of the first")
		}
		equal(t, "failing by the other", b.metric(t, "observerd_observer_failing{observer=order-1,reason=query,type=order}"), 1)
		pass(5 * interval)
		equal(t, "failing without a class", b.metric(t, "observerd_observer_failing{observer=order-1,reason=unknown,type=order}"), 1)
		equal(t, "series", b.series(t, "observerd_observer_failing"), 1)
	})
}

// TestOnlyPoisonIsToldUntilARowIsReadable has polls without rows, which say nothing.
func TestOnlyPoisonIsToldUntilARowIsReadable(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		source := answering(observer.Stats{Rows: 3, Poison: 3, OnlyPoison: observer.PoisonTimestamp})
		a := start(t, db, "a", only("order"), does("order-1", source.poll))
		const poison = "observerd_observer_only_poison{observer=order-1,reason=timestamp,type=order}"
		pass(interval / 2)
		equal(t, "only poison", a.metric(t, poison), 1)
		source.stats.Store(&observer.Stats{})
		pass(interval)
		equal(t, "only poison after a poll without rows", a.metric(t, poison), 1)
		source.stats.Store(&observer.Stats{Rows: 1, Readable: true})
		pass(interval)
		equal(t, "after a row", a.metric(t, "observerd_observer_only_poison{observer=order-1,reason=,type=order}"), 0)
		equal(t, "series", a.series(t, "observerd_observer_only_poison"), 1)
		equal(t, "failing", a.metric(t, "observerd_observer_failing{observer=order-1,reason=,type=order}"), 0)
	})
}

// series counts those of a metric.
func (n *node) series(t *testing.T, name string) int {
	t.Helper()
	families, err := n.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return len(family.GetMetric())
		}
	}
	return 0
}
