package schedule_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// ages reads what the alerts look at.
type ages struct {
	acquired, active, committed, succeeded, held float64
}

func (n *node) ages(t *testing.T) ages {
	t.Helper()
	return ages{
		acquired:  n.metric(t, "observerd_lock_last_acquired_age_seconds{type=order}"),
		active:    n.metric(t, "observerd_poll_last_activity_age_seconds{type=order}"),
		committed: n.metric(t, "observerd_chunk_last_committed_age_seconds{type=order}"),
		succeeded: n.metric(t, "observerd_poll_last_success_age_seconds{observer=order-1,type=order}"),
		held:      n.metric(t, "observerd_lock_held_seconds{type=order}"),
	}
}

// TestAgesOfAPoll follows one poll of ten seconds that commits a chunk in its
// middle.
func TestAgesOfAPoll(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		activity := schedule.NewActivity()
		poll := func(ctx context.Context, _ lock.Grant) (observer.Stats, error) {
			time.Sleep(4 * time.Second)
			activity.Committed()
			time.Sleep(6 * time.Second)
			return observer.Stats{}, nil
		}
		a := newNode(t, db, "a", only("order"), does("order-1", poll), func(o *schedule.Options) { o.Types[0].Activity = activity })
		pass(100 * time.Second) // as if the database had not been there
		if err := a.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.quit)
		pass(3 * time.Second)
		equal(t, "before the chunk", a.ages(t), ages{acquired: 3, active: 3, committed: 103, succeeded: 103, held: 3})
		pass(2 * time.Second)
		equal(t, "after the chunk", a.ages(t), ages{acquired: 5, active: 1, committed: 1, succeeded: 105, held: 5})
		pass(6 * time.Second)
		equal(t, "after the poll", a.ages(t), ages{acquired: 11, active: 1, committed: 7, succeeded: 1, held: 0})
		equal(t, "interval", a.metric(t, "observerd_poll_interval_seconds{type=order}"), interval.Seconds())
		equal(t, "ttl", a.metric(t, "observerd_lock_ttl_seconds{type=order}"), request("order", "").TTL.Seconds())
	})
}

func TestFailedPollsAreActivityAndNoSuccess(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", fails(errors.New("table is gone"))))
		pass(time.Second)
		equal(t, "ages", a.ages(t), ages{acquired: 1, active: 1, committed: 1, succeeded: 1, held: 0})
		pass(2 * time.Second)
		equal(t, "age of the success that never was", a.ages(t).succeeded, 3)
	})
}

func TestNodeThatIsSwitchedOffHasNoAges(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), func(o *schedule.Options) { o.Enabled = false })
		pass(time.Minute)
		families, err := a.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "observerd_lock_last_acquired_age_seconds" {
				t.Error("a node that takes no lock tells when it took one")
			}
		}
	})
}

func TestPausedObserverIsShown(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"))
		pass(time.Second)
		const paused = "observerd_observer_paused{observer=order-1,type=order}"
		equal(t, "at first", a.metric(t, paused), 0)
		const end = "observerd_observer_pause_end_timestamp_seconds{observer=order-1,type=order}"
		db.set(func(m *memory) {
			m.streams["order-1"] = turn.Stream{Stream: "order-1", Paused: true, PausedUntil: time.UnixMilli(4102444800500)}
		})
		pass(interval)
		equal(t, "paused", a.metric(t, paused), 1)
		equal(t, "paused until", a.metric(t, end), 4102444800.5)
		db.set(func(m *memory) { m.streams["order-1"] = turn.Stream{Stream: "order-1"} })
		pass(interval)
		equal(t, "resumed", a.metric(t, paused), 0)
		equal(t, "resumed", a.metric(t, end), 0)
	})
}
