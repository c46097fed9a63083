package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// ticks are the numbers of the ticks at which an observer was polled.
func ticks(s *stream) []int {
	var tried []int
	for _, at := range s.polls() {
		tried = append(tried, int(at.Sub(start2000())/interval))
	}
	return tried
}

// TestClassOfAFailureDecidesOnThePause shows an observer that waits for as long
// as its failure asks for, where that is more than its own backoff.
func TestClassOfAFailureDecidesOnThePause(t *testing.T) {
	for class, want := range map[observer.Class][]int{
		observer.ClassCredentials: {0, 60, 120},                   // half an hour each
		observer.ClassQuery:       {0, 2, 6, 14, 30, 60, 90, 120}, // 1, 2, 4, 8, 15 minutes
		observer.ClassTimeout:     {0, 1, 3, 7, 15, 31, 51, 71, 91, 111},
		observer.ClassResource:    {0, 1, 3, 7, 15, 31, 51, 71, 91, 111},
	} {
		t.Run(string(class), func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				fault := &observer.Fault{Class: class, Err: errors.New("refused")}
				a := start(t, db, "a", only("order"), does("order-1", fails(fmt.Errorf("read: %w", fault))))
				pass(120*interval + interval/2)
				if tried := ticks(a.streams["order-1"]); !slices.Equal(tried, want) {
					t.Errorf("polled at ticks %v, want %v", tried, want)
				}
				notes := db.noted("order-1")
				if got := notes[0].Reason; got != string(class)+": read: refused" {
					t.Errorf("reason %q", got)
				}
			})
		})
	}
}

// TestClassBeginsAtItsLeastPause has an observer fail four times in one way and then in
// another, which begins with its own least pause and grows from there. Failures of classes
// without a pause of their own are one row.
func TestClassBeginsAtItsLeastPause(t *testing.T) {
	for name, tc := range map[string]struct {
		first []observer.Class
		then  observer.Class
		want  []int
	}{
		"a pause of its own, after the backoff":     {[]observer.Class{observer.ClassRetry, observer.ClassTimeout, observer.ClassRetry, ""}, observer.ClassKilled, []int{0, 1, 3, 7, 15, 17, 21, 29}},
		"a pause of its own, after that of another": {[]observer.Class{observer.ClassKilled, observer.ClassKilled}, observer.ClassQuery, []int{0, 2, 6, 8, 12, 20}},
		"the backoff, after a pause":                {[]observer.Class{observer.ClassKilled, observer.ClassKilled, observer.ClassKilled}, observer.ClassTimeout, []int{0, 2, 6, 14, 15, 17, 21, 29}},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				polls := 0
				a := start(t, db, "a", only("order"), does("order-1", func(context.Context, lock.Grant) (observer.Stats, error) {
					class := tc.then
					if polls < len(tc.first) {
						class = tc.first[polls]
					}
					polls++
					if class == "" {
						return observer.Stats{}, errors.New("of no source")
					}
					return observer.Stats{}, &observer.Fault{Class: class, Err: errors.New("refused")}
				}))
				pass(29*interval + interval/2)
				if tried := ticks(a.streams["order-1"]); !slices.Equal(tried[:min(len(tried), len(tc.want))], tc.want) {
					t.Errorf("polled at ticks %v, want %v", tried, tc.want)
				}
			})
		})
	}
}

func TestPauseLongerThanAnyIsOfAClockThatWentBack(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		db.streams["order-1"] = turn.Stream{Stream: "order-1", Failures: 1, RetryAt: start2000().Add(31 * time.Minute)}
		db.streams["order-2"] = turn.Stream{Stream: "order-2", Failures: 1, RetryAt: start2000().Add(30 * time.Minute)}
		a := start(t, db, "a", only("order"), observers("order", "order-1", "order-2"))
		pass(interval / 2)
		equal(t, "polls after an absurd pause", a.polls("order-1"), 1)
		equal(t, "polls in a pause that is to be believed", a.polls("order-2"), 0)
	})
}

// Recovered implements schedule.Recoverable.
func (s *stream) Recovered(context.Context) bool { return s.recovered != nil && s.recovered() }

func TestObserverWhoseCauseIsGoneNeedNotWait(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		var fixed atomic.Bool
		var asked atomic.Int64
		fault := &observer.Fault{Class: observer.ClassCredentials, Err: errors.New("refused")}
		a := start(t, db, "a", only("order"), does("order-1", fails(fault)), func(o *schedule.Options) {
			o.Types[0].Observers[0].(*stream).recovered = func() bool {
				asked.Add(1)
				return fixed.Load()
			}
		})
		pass(10*interval + interval/2)
		equal(t, "polls in the backoff", a.polls("order-1"), 1)
		equal(t, "times that it was asked", asked.Load(), 10)
		fixed.Store(true)
		pass(interval)
		equal(t, "polls once the cause is gone", a.polls("order-1"), 2)
	})
}

// TestMissingRowsHoldUpNoOthers shows an observer that is polled in each turn
// although its snapshot is refused: rows that are there must not wait for a person.
func TestMissingRowsHoldUpNoOthers(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", fails(fmt.Errorf("poll: %w", observer.ErrMassDisappearance))))
		pass(5*interval + interval/2)
		if tried := ticks(a.streams["order-1"]); !slices.Equal(tried, []int{0, 1, 2, 3, 4, 5}) {
			t.Errorf("polled at ticks %v", tried)
		}
		if notes := db.noted("order-1"); notes[5].Failures != 6 {
			t.Errorf("%d failures are noted", notes[5].Failures)
		}
	})
}

// TestOutdatedNodeLeavesTheObserver leaves one observer to the nodes that define it
// as the cluster does, and polls the others.
func TestOutdatedNodeLeavesTheObserver(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		two := observers("order", "order-1", "order-2")
		a := start(t, db, "a", only("order"), two, does("order-1", fails(fmt.Errorf("poll: %w", observer.ErrOtherDefinition))))
		b := start(t, db, "b", only("order"), two)
		pass(20*interval + interval/2)
		if a.polls("order-1") == 0 || b.polls("order-1") < 20 {
			t.Errorf("the outdated node tried %d times, the other polled %d times", a.polls("order-1"), b.polls("order-1"))
		}
		if n := a.polls("order-2") + b.polls("order-2"); n != 21 {
			t.Errorf("the neighbour was polled %d times", n)
		}
		if s := db.streams["order-1"]; s.Failures != 0 {
			t.Errorf("%d failures are noted", s.Failures)
		}
		equal(t, "told", fmt.Sprint(db.nodes[a.boot].Outdated, db.nodes[b.boot].Outdated), "[order-1] []")
		equal(t, "metric", a.metric(t, "observerd_observer_outdated{observer=order-1,type=order}"), 1)
	})
}
