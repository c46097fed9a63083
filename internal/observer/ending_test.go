package observer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

var errLost = errors.New("lease was lost")

func TestPollThatIsCancelledCommitsNoMore(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"cursor", "horizon", "read", "observed", "commit"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew)
			s.put(0, 30)
			ctx, cancel := context.WithCancelCause(t.Context())
			var commits int
			step := func(name string) error {
				if name == call {
					cancel(errLost)
				}
				if name == "commit" {
					commits++
				}
				return nil
			}
			s.db.Step = step
			s.src.Step = func(name string) error {
				if name == call {
					cancel(errLost)
				}
				return nil
			}
			_, err := s.observer().Poll(ctx, s.src, s.db.Acquire())
			if !errors.Is(err, errLost) {
				t.Fatalf("got %v, want the cause", err)
			}
			want := 0
			if call == "commit" {
				want = 1 // The one that had begun runs to its end.
			}
			equal(t, "commits", commits, want)
			equal(t, "events", len(s.story()), 3*want)
		})
	}
}

// The lease may be lost while an answer is on its way.
func TestNoCommitBeginsAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 30)
	ctx, cancel := context.WithCancelCause(t.Context())
	st := cancelling{s.db.Acquire(), func() { cancel(errLost) }}
	if _, err := s.observer().Poll(ctx, s.src, st); !errors.Is(err, errLost) {
		t.Fatalf("got %v", err)
	}
	equal(t, "chunks", len(s.db.Chunks(stream)), 0)
}

// cancelling is a store that answers, but too late.
type cancelling struct {
	observer.Store
	cancel func()
}

func (c cancelling) Observed(ctx context.Context, cur observer.Cursor, keys []string) ([]observer.Observed, error) {
	defer c.cancel()
	return c.Store.Observed(ctx, cur, keys)
}

func TestPollThatHasEndedDoesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLost)
	if _, err := s.observer().Poll(ctx, s.src, s.db.Acquire()); !errors.Is(err, errLost) {
		t.Fatalf("got %v", err)
	}
	equal(t, "reads", len(s.src.Reads()), 0)
}

func TestNothingHappensAfterAFencedCommit(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot)
	s.put(0, 30)
	o, old := s.observer(), s.db.Acquire()
	s.db.Acquire()
	var after []string
	s.db.Step = func(call string) error {
		after = append(after, call)
		return nil
	}
	_, err := o.Poll(t.Context(), s.src, old)
	if !errors.Is(err, observertest.ErrFenced) {
		t.Fatalf("got %v", err)
	}
	equalList(t, "calls", after, "cursor", "generation", "observed", "commit")
	equal(t, "events", len(s.story()), 0)
}

func TestTwoPollersOfOneStream(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 9)
	o, st := s.observer(), s.db.Acquire()
	var other error
	overtaken := false
	s.src.Step = func(call string) error {
		if call == "read" && !overtaken {
			overtaken = true
			_, other = o.Poll(t.Context(), s.src, st)
		}
		return nil
	}
	_, err := o.Poll(t.Context(), s.src, st)
	if other != nil || !errors.Is(err, observertest.ErrStale) {
		t.Fatalf("got %v and %v, want one to fail", other, err)
	}
	s.checkLog()
	equal(t, "events", len(s.story()), 9)
}

func TestFailuresSayWhatFailed(t *testing.T) {
	t.Parallel()
	for call, text := range map[string]string{
		"cursor":   "read cursor: ",
		"identity": "read identity: ",
		"horizon":  "read horizon: ",
		"read":     "read source: ",
		"next":     "read source: ",
		"observed": "read observed rows: ",
		"live":     "read live rows: ",
		"commit":   "commit chunk: ",
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectSnapshot)
			if call == "identity" { // Of others it comes with the horizon.
				s.spec.Query.Timestamp, s.src.Unordered = "", true
			}
			s.put(0, 9)
			s.poll()
			s.src.Delete(key(0))
			s.src.Step, s.db.Step = failAt(call, 1), failAt(call, 1)
			_, err := s.tryPoll()
			if !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), text) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestRowsBeforeAFailureAreObserved(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 9)
	s.src.Step = failAt("next", 6)
	if _, err := s.tryPoll(); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	equal(t, "events", len(s.story()), 5)
	s.poll()
	equal(t, "events in the end", len(s.checkLog()), 9)
}

// A panic in the goroutine that reads would end the process; in the caller's
// it can be recovered.
func TestPanicOfTheSourceReachesTheCaller(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 9)
	s.src.Step = func(call string) error {
		if call == "next" {
			panic("driver bug")
		}
		return nil
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "driver bug") {
			t.Errorf("recovered %q", text)
		}
	}()
	_, err := s.tryPoll()
	t.Errorf("returned %v", err)
}

func TestCommitIsBoundedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew)
		s.put(0, 1)
		_, err := s.observer().Poll(t.Context(), s.src, hanging{s.db.Acquire()})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	})
}

// hanging is a store whose commits never return by themselves.
type hanging struct{ observer.Store }

func (hanging) Commit(ctx context.Context, _ observer.Chunk) (observer.Cursor, error) {
	<-ctx.Done()
	return observer.Cursor{}, ctx.Err()
}
