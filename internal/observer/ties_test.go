package observer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/test/kit/simtest"
)

// tied is a source of which a read can begin among rows that share a timestamp, with
// a group of n of them, and one row behind it.
func tied(t tester, n int, adapt ...func(*observer.Spec)) *stage {
	t.Helper()
	s := setup(t, observer.DetectChange, adapt...)
	s.src.SetTies("id")
	for i := range n {
		s.src.Add(observertest.At(key(i), "a", 10))
	}
	s.src.SetClock(20)
	s.put(n, 1)
	return s
}

// lasted are the times that statements took.
type lasted struct {
	observer.Source
	times []time.Duration
}

func (l *lasted) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	rows, err := l.Source.Read(ctx, q, in)
	return &lastedRows{rows, l, time.Now()}, err
}

type lastedRows struct {
	observer.Rows
	l     *lasted
	began time.Time
}

func (r *lastedRows) Close() error {
	r.l.times = append(r.l.times, time.Since(r.began))
	return r.Rows.Close()
}

// A source takes minutes for rows of one timestamp. No statement lasts longer than it
// may, and a later one begins with the last row of that before it.
func TestStatementsEndAmongRowsOfOneTimestamp(t *testing.T) {
	t.Parallel()
	for name, adapt := range map[string]func(*observer.Spec){
		"a slow source": func(*observer.Spec) {},
		"a bound rate":  func(s *observer.Spec) { s.MaxRate = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := tied(t, 200, adapt)
				if s.spec.MaxRate == 0 {
					s.takes(time.Second, 1)
				}
				src := &lasted{Source: s.src}
				s.pollOf(src)
				equal(t, "events", len(s.checkLog()), 201)
				equal(t, "poison rows", len(s.db.Dead(stream)), 0)
				if longest := slices.Max(src.times); longest > 15*time.Second || len(src.times) < 15 {
					t.Errorf("%d statements, of which one took %s", len(src.times), longest)
				}
				for _, r := range s.src.Ranges()[2:] {
					if r.Key == "" || r.Order != "id" {
						t.Errorf("a statement begins at %+v", r)
					}
				}
			})
		})
	}
}

// More rows of one timestamp than a poll has time for are read to their end by the
// poll that begins with them, whatever it has found: the next one would be where it
// was. It commits all the while, and knows what it has read only while it lasts.
func TestPollPassesTheRowsOfOneTimestamp(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"all are new": false, "all are known": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := tied(t, 200, pollTime(5*time.Second))
				if known {
					s.src.SetIdentity("db:1")
					s.poll()
					s.src.SetIdentity("db:2") // It is read again from its beginning.
				}
				s.spec.MaxRate = 2
				equal(t, "full", s.poll().Full, true)
				before := s.db.Cursor(stream).Version
				began := time.Now()
				s.poll()
				if took := time.Since(began); took < 90*time.Second || took > 120*time.Second {
					t.Errorf("it took %s for 200 rows at two a second", took)
				}
				if commits := s.db.Cursor(stream).Version - before; commits < 8 {
					t.Errorf("%d commits on the way", commits)
				}
				equal(t, "events", len(s.checkLog()), 201)
				equal(t, "low-water mark", s.db.Cursor(stream).Low > observertest.CursorAt(10), true)
			})
		})
	}
}

// A poll that goes on past its time ends with its context, when nothing arrives any
// more, and when it has met as many changes as it may.
func TestPollThatGoesOnEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		adapt func(*observer.Spec)
		slow  func(*stage)
		want  error
		took  time.Duration
	}{
		"its lease is lost": {want: errLost, took: 40 * time.Second},
		"the source falls silent": {slow: func(s *stage) {
			rows := 0
			s.src.Step = func(call string) error {
				if rows++; call == "next" && rows > 60 {
					time.Sleep(time.Hour)
				}
				return nil
			}
		}, took: time.Hour + time.Minute},
		"its changes": {adapt: changedAtMost(40), took: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := tied(t, 200, pollTime(5*time.Second))
				s.spec.MaxRate = 2
				s.poll()
				if test.adapt != nil {
					test.adapt(&s.spec)
				}
				if test.slow != nil {
					test.slow(s)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				time.AfterFunc(40*time.Second, func() {
					if test.want != nil {
						cancel(test.want)
					}
				})
				began := time.Now()
				stats, err := s.observer().Poll(ctx, s.src, s.db.Acquire())
				switch {
				case test.slow != nil:
					if err == nil || !strings.Contains(err.Error(), "no row has arrived") {
						t.Errorf("got %v", err)
					}
				case !errors.Is(err, test.want):
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took > test.took+time.Second {
					t.Errorf("it took %s", took)
				}
				if test.adapt != nil {
					equal(t, "full", stats.Full, true)
					equal(t, "events", stats.Events, 40)
				}
				s.spec.MaxRate, s.spec.MaxChanged, s.src.Step = 0, 0, nil
				s.poll()
				equal(t, "events", len(s.checkLog()), 201)
			})
		})
	}
}

// What a poll had compared when its time ended, and not committed, is compared again
// by the one that goes on: the marks must not have moved over it.
func TestPollThatGoesOnForgetsWhatItHasNotCommitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := tied(t, 20, pollTime(5*time.Second), chunkRows(8))
		s.poll()
		for i := range 20 {
			s.src.Delete(key(i))
			s.src.Add(observertest.At(key(i), "b", 30))
		}
		s.src.Add(observertest.At("next", "a", 31))
		s.src.SetClock(40)
		s.spec.MaxChanged = 1
		s.poll() // The mark stands at the group now.
		s.spec.MaxChanged = 0
		st := &dawdling{Store: s.db.Acquire(), at: 3, late: func() {
			time.Sleep(6 * time.Second) // The time of the poll ends before the commit.
			s.takes(time.Second, 1)     // The chunks are smaller from now on.
		}}
		commits := 0
		s.db.Step = func(call string) error {
			if call == "commit" {
				if commits++; commits == 4 {
					return errBroken
				}
			}
			return nil
		}
		if _, err := s.observer().Poll(t.Context(), s.src, st); !errors.Is(err, errBroken) {
			t.Fatalf("got %v", err)
		}
		s.db.Step, s.src.Step = nil, nil
		s.poll()
		s.checkLog()
		equal(t, "events", len(s.story()), 42)
	})
}

// dawdling is a store that does something after the answer to a lookup.
type dawdling struct {
	observer.Store
	at   int
	late func()
}

func (d *dawdling) Observed(ctx context.Context, c observer.Cursor, keys []string) ([]observer.Observed, error) {
	known, err := d.Store.Observed(ctx, c, keys)
	if d.at--; d.at == 0 {
		d.late()
	}
	return known, err
}

// Where no read can begin among rows of one timestamp, they come from one statement.
func TestRowsOfOneTimestampOfAnotherOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := tied(t, 200)
		s.takes(time.Second, 1)
		time.AfterFunc(30*time.Second, func() { s.src.SetTies("altered") })
		if _, err := s.tryPoll(); observer.ClassOf(err) != observer.ClassRetry {
			t.Fatalf("got %v", err)
		}
		s.src.SetTies("")
		s.poll()
		equal(t, "events", len(s.checkLog()), 201)
		for _, r := range s.src.Ranges()[4:] {
			equal(t, "key", r.Key, "")
		}
	})
}

// Where no read goes on by the key, a statement does not end among rows without a
// timestamp: the next one would begin with the first of them.
func TestStatementDoesNotEndAmongRowsWithoutATimestamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew)
		s.put(0, 3)
		for i := range 40 {
			s.src.Add(observertest.At(key(100+i), "a", -1))
		}
		s.pollOf(slowly{s.src})
		equal(t, "events", len(s.checkLog()), 43)
	})
}

// TestSimulatedTies polls groups of rows that share a timestamp from a slow source, in
// polls of little time and statements of less, beside writers whose transactions
// commit late and in groups, and with polls that fail anywhere. When it rests, each
// version is there once.
func TestSimulatedTies(t *testing.T) {
	t.Parallel()
	tally := simtest.Check(t, simulateTies)
	tally.Demand(t, "began among rows of one timestamp", "went on past its time", "broken", "late commit")
}

func simulateTies(t *rapid.T, tally *simtest.Tally) {
	s := setup(t, rapid.SampledFrom([]observer.Detect{observer.DetectNew, observer.DetectChange}).Draw(t, "detect"), func(s *observer.Spec) {
		s.ChunkRows = rapid.IntRange(1, 6).Draw(t, "rows a chunk")
		s.MaxChanged = rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "changes a poll")
		s.StatementTime = time.Duration(rapid.IntRange(1, 8).Draw(t, "seconds a statement")) * time.Second
		s.PollTime = time.Duration(rapid.IntRange(3, 20).Draw(t, "seconds a poll")) * time.Second
	})
	s.src.SetTies("id")
	keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[aAbBcC]{1,3}`), 10, 50, rapid.ID).Draw(t, "keys")
	last, ever := make(map[string]string), make(map[string]bool)
	write := func(tx *observertest.Tx, value string) {
		for _, k := range rapid.SliceOfDistinct(rapid.SampledFrom(keys), rapid.ID).Draw(t, "written") {
			tx.Put(k, value)
			last[k], ever[k] = value, true
		}
	}
	var late *observertest.Tx
	for step := range rapid.IntRange(2, 30).Draw(t, "steps") {
		if late == nil && step%3 == 0 {
			tx := s.src.Begin()
			write(tx, fmt.Sprint("v", step))
			if rapid.Bool().Draw(t, "stays open") {
				late = tx
			} else {
				tx.Commit()
			}
		}
		s.src.Pass(int64(rapid.IntRange(0, 100).Draw(t, "seconds")))
		fault, way, after := rapid.IntRange(1, 60).Draw(t, "fault at"), rapid.IntRange(0, 3).Draw(t, "fault"), rapid.IntRange(1, 50).Draw(t, "commit at")
		calls := 0
		s.src.Step = func(call string) error {
			if calls++; call == "next" {
				time.Sleep(time.Second)
			}
			if calls == after && late != nil {
				tx := late
				late = nil
				tx.Commit()
				tally.Count("late commit")
			}
			if calls == fault && way == 1 {
				return errBroken
			}
			return nil
		}
		commits := 0
		s.db.Step = func(call string) error {
			if commits++; way == 2 && commits == fault {
				return errBroken
			}
			return nil
		}
		began := time.Now()
		switch _, err := s.tryPoll(); {
		case errors.Is(err, errBroken):
			tally.Count("broken")
		case err != nil && !errors.Is(err, observer.ErrPollTime):
			t.Fatal(err)
		case time.Since(began) > s.spec.PollTime+3*time.Second:
			tally.Count("went on past its time")
		}
		s.src.Step, s.db.Step = nil, nil
	}
	if late != nil {
		late.Commit()
	}
	s.src.Pass(10)
	s.src.Put("zz", "last")
	last["zz"] = "last"
	s.spec.MaxChanged = 0
	for range 3 {
		s.poll()
	}
	for _, r := range s.src.Ranges() {
		if r.Key != "" {
			tally.Count("began among rows of one timestamp")
		}
	}
	log := s.checkLog()
	for k, value := range last {
		versions := log[k]
		if len(versions) == 0 {
			t.Fatalf("%s was lost", k)
		}
		if s.spec.Detect == observer.DetectNew {
			if len(versions) != 1 {
				t.Fatalf("%s has %d events", k, len(versions))
			}
			continue
		}
		if want := string(observertest.At(k, value, 0).Data); string(versions[len(versions)-1].Data) != want {
			t.Fatalf("%s is %s, observed last as %s", k, want, versions[len(versions)-1].Data)
		}
		for i := range versions[1:] {
			if string(versions[i].Data) == string(versions[i+1].Data) {
				t.Fatalf("%s has an event twice: %s", k, versions[i].Data)
			}
		}
	}
	if len(s.db.Dead(stream)) > 0 {
		t.Fatalf("poison rows %v", s.db.Dead(stream))
	}
}

// A poll that has only the time until the next is due, and has not come far in it, is
// no failure. It does not go on past that among rows of one timestamp.
func TestPollThatEndsAsTheNextIsDue(t *testing.T) {
	t.Parallel()
	for name, began := range map[string]bool{"before its first row": false, "among rows of one timestamp": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := tied(t, 200, pollTime(5*time.Second))
				s.spec.MaxRate = 2
				s.poll()
				if !began {
					s.takes(time.Minute, 1)
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, observer.ErrNextTick)
				defer cancel()
				if !began { // It would be over sooner.
					s.spec.PollTime = time.Minute
				}
				start := time.Now()
				stats, err := s.observer().Poll(ctx, s.src, s.db.Acquire())
				if err != nil || !stats.Full || stats.Events > 0 != began {
					t.Errorf("%+v, %v", stats, err)
				}
				if took := time.Since(start); took > 20*time.Second && began {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
