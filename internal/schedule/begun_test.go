package schedule_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/schedule"
)

func hasBegun(n *node) bool {
	select {
	case <-n.sched.Begun():
		return true
	default:
		return false
	}
}

func TestBegunOnlyWhenJobsRun(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		n := newNode(t, db, "a")
		defer n.quit()
		equal(t, "begun before the start", hasBegun(n), false)
		db.set(func(m *memory) { m.down = true })
		if err := n.sched.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		equal(t, "begun without a database", hasBegun(n), false)
		equal(t, "waits for the database", n.sched.Waiting(), true)
		db.set(func(m *memory) { m.down = false })
		pass(10 * time.Second)
		equal(t, "begun", hasBegun(n), true)
		equal(t, "waits still", n.sched.Waiting(), false)
		if n.polls("order-1") == 0 {
			t.Error("it has begun, and polls nothing")
		}
	})
}

func TestNodesThatPollNothingBeginToo(t *testing.T) {
	for name, change := range map[string]setup{
		"switched off":  func(o *schedule.Options) { o.Enabled = false },
		"without types": only(),
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				n := start(t, db, "a", change)
				pass(time.Second)
				equal(t, "begun", hasBegun(n), true)
			})
		})
	}
}

func TestStopComesBeforeTheBeginning(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		n := newNode(t, db, "a")
		n.quit()
		pass(time.Minute)
		equal(t, "begun", hasBegun(n), false)
	})
}

// TestOutageInATurnDoesNotLastUntilTheNext lets the database go away for a while
// when a type has just taken its lock: it asks again in an hour.
func TestOutageInATurnDoesNotLastUntilTheNext(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		n := newNode(t, db, "a", only("order"), every(time.Hour))
		defer n.quit()
		n.db.beforeAcquire = sync.OnceFunc(func() { db.set(func(m *memory) { m.down = true }) })
		if err := n.sched.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Second)
		equal(t, "waits for the database", n.sched.Waiting(), true)
		equal(t, "outages that the log has", n.log.count("cannot be used; waiting for it"), 1)
		db.set(func(m *memory) { m.down = false })
		pass(30 * time.Second)
		equal(t, "waits still", n.sched.Waiting(), false)
	})
}
