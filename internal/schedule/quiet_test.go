package schedule_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
)

// A quiet node logs the turns with events or errors, and one line each hour.
func TestQuietCycles(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		turns := 0
		sometimes := func(context.Context, lock.Grant) (observer.Stats, error) {
			switch turns++; turns {
			case 10:
				return observer.Stats{Rows: 3, Events: 2}, nil
			case 20:
				return observer.Stats{}, errors.New("no such table")
			case 30:
				return observer.Stats{Rows: 1, Poison: 1}, nil
			}
			return observer.Stats{Rows: 1}, nil
		}
		nothing := func(context.Context, lock.Grant) (observer.Stats, error) { return observer.Stats{Rows: 1}, nil }
		n := start(t, db, "a", does("order-1", sometimes), does("wes-1", nothing), does("inventory-1", nothing), func(o *schedule.Options) { o.Quiet = true })
		pass(time.Hour - time.Second)
		equal(t, "lines of polls", n.log.count("level=INFO", `msg="Completed polling"`), 3)
		equal(t, "lines of cycles", n.log.count("level=INFO", `msg="Polling cycle completed`), 3)
		equal(t, "lines of locks", n.log.count("level=INFO", `msg="Lock acquired"`), 0)
		equal(t, "lines of beginnings", n.log.count("level=INFO", `msg="Starting scheduled`), 0)
		equal(t, "lines at DEBUG of polls", n.log.count("level=DEBUG", `msg="Completed polling"`, "type=wes"), n.polls("wes-1"))
		equal(t, "summaries", n.log.count(`msg="Polling summary"`), 0)
		polls := n.polls("wes-1")
		pass(2 * time.Second)
		equal(t, "summaries after an hour", n.log.count("level=INFO", `msg="Polling summary"`), 1)
		if n.log.count("types.order.events=2", "types.order.errors=2", "types.wes.errors=0", "types.inventory.events=0") != 1 || polls < 100 {
			t.Errorf("another summary of %d polls:\n%s", polls, n.log.buf.String()[n.log.buf.Len()-2000:])
		}
		pass(time.Hour)
		equal(t, "summaries after two hours", n.log.count("level=INFO", `msg="Polling summary"`), 2)
		equal(t, "events of the second hour", n.log.count(`msg="Polling summary"`, "types.order.events=0", "types.order.errors=0"), 1)
	})
}

// All lines are those of a client, who counts them: by default each turn has its four.
func TestAllCycles(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		n := start(t, db, "a")
		pass(61*time.Minute + time.Second)
		polls := n.polls("order-1")
		for msg, want := range map[string]int{
			`msg="Completed polling"`: 3 * polls, `msg="Lock acquired"`: 3 * polls, `msg="Starting scheduled`: polls, `msg="Polling cycle completed`: polls, `msg="Polling summary"`: 0,
		} {
			equal(t, msg, n.log.count("level=INFO", msg), want)
		}
	})
}
