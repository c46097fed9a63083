package observer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

// TestCrashAtEveryStep ends a poll at each of its steps in turn, in each of
// the ways a poll can end. A row below the chunks that it may have committed
// appears afterwards, and another poller goes on: each row has one event.
func TestCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectChange, observer.DetectSnapshot} {
		for name, crash := range map[string]func(*stage, int64) error{
			"failure":      pollFailing,
			"cancellation": pollCancelled,
			"commit":       pollDyingAfterCommit,
		} {
			t.Run(fmt.Sprintf("%s/%s", detect, name), func(t *testing.T) {
				t.Parallel()
				for step := int64(1); ; step++ {
					if survived := crashAndResume(t, detect, crash, step); survived {
						if step < 7 {
							t.Fatalf("only %d steps", step)
						}
						return
					}
				}
			})
		}
	}
}

func crashAndResume(t *testing.T, detect observer.Detect, crash func(*stage, int64) error, step int64) (survived bool) {
	s := setup(t, detect)
	s.put(0, 7)
	late := s.src.Begin()
	late.Put("late", "a")
	s.put(10, 10)
	err := crash(s, step)
	if err != nil && !errors.Is(err, errBroken) {
		t.Fatalf("step %d: %v", step, err)
	}
	s.src.Step, s.db.Step = nil, nil
	late.Commit()
	s.put(20, 4)
	s.poll()
	if n := len(s.checkLog()); n != 22 || len(s.story()) != 22 {
		t.Fatalf("step %d: %d keys and %d events, want 22", step, n, len(s.story()))
	}
	return err == nil
}

// pollFailing has the call of that number fail, on either side.
func pollFailing(s *stage, step int64) error {
	var n atomic.Int64
	fail := func(string) error {
		if n.Add(1) == step {
			return errBroken
		}
		return nil
	}
	s.src.Step, s.db.Step = fail, fail
	_, err := s.tryPoll()
	return err
}

// pollCancelled cancels the poll within the call of that number.
func pollCancelled(s *stage, step int64) error {
	ctx, cancel := context.WithCancelCause(s.t.Context())
	defer cancel(nil)
	var n atomic.Int64
	stop := func(string) error {
		if n.Add(1) == step {
			cancel(errBroken)
		}
		return nil
	}
	s.src.Step, s.db.Step = stop, stop
	_, err := s.observer().Poll(ctx, s.src, s.db.Acquire())
	if n.Load() >= step && err == nil {
		return errBroken // It was the last call; the poll did not have to notice.
	}
	return err
}

// pollDyingAfterCommit is a process that dies between a commit and its answer.
func pollDyingAfterCommit(s *stage, step int64) error {
	_, err := s.observer().Poll(s.t.Context(), s.src, &dying{s.db.Acquire(), step})
	return err
}

type dying struct {
	observer.Store
	left int64
}

func (d *dying) Commit(ctx context.Context, ch observer.Chunk) (observer.Cursor, error) {
	c, err := d.Store.Commit(ctx, ch)
	if d.left--; err == nil && d.left == 0 {
		err = errBroken
	}
	return c, err
}

// A stale poller that wakes up after another took over changes nothing, at
// whichever of its commits it slept.
func TestStalePollerAtEveryCommit(t *testing.T) {
	t.Parallel()
	for sleep := 1; sleep <= 6; sleep++ {
		s := setup(t, observer.DetectChange)
		s.put(0, 18)
		commits := 0
		s.db.Step = func(call string) error {
			if call != "commit" {
				return nil
			}
			if commits++; commits == sleep {
				s.db.Step = nil
				s.poll()
			}
			return nil
		}
		if _, err := s.tryPoll(); err == nil {
			t.Fatalf("commit %d of a stale poller was accepted", sleep)
		}
		equal(t, "events", len(s.story()), 18)
		s.checkLog()
	}
}
