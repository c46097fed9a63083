package simtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/test/kit/simtest"
)

// latency is more than that of any call.
const latency = 5 * time.Millisecond

func bubble(t *testing.T, story func(t *testing.T, w *simtest.Wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := simtest.NewWire("a", 1, simtest.NewJournal())
		story(t, w)
		w.Settle()
	})
}

// call makes a call that may take ten seconds, and returns when it was carried
// out, which is 0 for never, and when it was answered.
func call(t *testing.T, w *simtest.Wire) (done, answered time.Duration, err error) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	at := make(chan time.Duration, 1)
	err = simtest.Do(ctx, w, "call", "", func(ctx context.Context) error {
		at <- time.Since(began)
		return ctx.Err()
	})
	answered = time.Since(began)
	synctest.Wait()
	time.Sleep(time.Minute)
	select {
	case done = <-at:
	default:
	}
	return done, answered, err
}

func TestFaultsBefallACallAsTheyShould(t *testing.T) {
	t.Parallel()
	const never = 0
	for _, tt := range []struct {
		fault          simtest.Fault
		done, answered time.Duration // 0: never, or at once
		fails          bool
	}{
		{fault: simtest.Fault{}, done: latency},
		{fault: simtest.Fault{Kind: simtest.Refused}, done: never, fails: true},
		{fault: simtest.Fault{Kind: simtest.Hung}, done: never, answered: 10 * time.Second, fails: true},
		{fault: simtest.Fault{Kind: simtest.Slow, Delay: 4 * time.Second}, done: 4 * time.Second, answered: 4 * time.Second},
		{fault: simtest.Fault{Kind: simtest.Slow, Delay: 20 * time.Second}, done: never, answered: 10 * time.Second, fails: true},
		{fault: simtest.Fault{Kind: simtest.Late, Delay: 20 * time.Second}, done: latency, answered: 20 * time.Second},
		{fault: simtest.Fault{Kind: simtest.Deaf, Delay: 20 * time.Second}, done: 20 * time.Second, answered: 20 * time.Second},
		{fault: simtest.Fault{Kind: simtest.Lost}, done: latency, fails: true},
		{fault: simtest.Fault{Kind: simtest.Unanswered}, done: latency, answered: 10 * time.Second, fails: true},
		{fault: simtest.Fault{Kind: simtest.Orphaned, Delay: 20 * time.Second}, done: 20 * time.Second, fails: true},
	} {
		t.Run(tt.fault.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *simtest.Wire) {
				if tt.fault.Kind != "" {
					w.Arm("call", 1, tt.fault)
				}
				done, answered, err := call(t, w)
				if (done == 0) != (tt.done == never) || done < tt.done-latency || done > tt.done+2*latency {
					t.Errorf("carried out after %s, want %s", done, tt.done)
				}
				if answered < tt.answered || answered > tt.answered+2*latency {
					t.Errorf("answered after %s, want %s", answered, tt.answered)
				}
				if (err != nil) != tt.fails {
					t.Errorf("error %v", err)
				}
				if bitten := w.Bites("call").Count > 0; bitten != (tt.fault.Kind != "") {
					t.Errorf("counted as bitten: %t", bitten)
				}
				if _, answered, err := call(t, w); answered > latency || err != nil {
					t.Errorf("the call after it was answered after %s: %v", answered, err)
				}
			})
		})
	}
}

func TestPausedProcessGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *simtest.Wire) {
		// Every other call is sent though its time was over.
		sent := 0
		for range 20 {
			w.Pause()
			time.AfterFunc(time.Hour, w.Resume)
			done, answered, err := call(t, w)
			if answered < time.Hour || (done == 0) != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("carried out after %s, answered after %s: %v", done, answered, err)
			}
			if done > 0 {
				sent++
			}
		}
		if sent == 0 || sent == 20 {
			t.Errorf("%d of 20 calls were sent", sent)
		}
		// It slept while its call was under way, which is answered when it wakes.
		time.AfterFunc(time.Microsecond, w.Pause)
		time.AfterFunc(time.Second, w.Resume)
		if done, answered, err := call(t, w); done > latency || answered != time.Second || err != nil {
			t.Errorf("carried out after %s, answered after %s: %v", done, answered, err)
		}
	})
}

// A call that is sent though its time was over waits for no answer.
func TestPausedProcessWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	for _, kind := range []simtest.Kind{simtest.Hung, simtest.Unanswered} {
		bubble(t, func(t *testing.T, w *simtest.Wire) {
			for range 20 {
				w.Arm("call", 1, simtest.Fault{Kind: kind})
				w.Pause()
				time.AfterFunc(time.Hour, w.Resume)
				if _, answered, err := call(t, w); answered > time.Hour+latency || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: answered after %s: %v", kind, answered, err)
				}
			}
		})
	}
}

func TestKilledProcessReachesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *simtest.Wire) {
		w.Arm("call", 1, simtest.Fault{Kind: simtest.Deaf, Delay: time.Hour})
		time.AfterFunc(time.Second, w.Kill)
		if done, answered, err := call(t, w); done != 0 || answered != time.Second || !errors.Is(err, simtest.ErrDead) {
			t.Errorf("carried out after %s, answered after %s: %v", done, answered, err)
		}
		if done, _, err := call(t, w); done != 0 || !errors.Is(err, simtest.ErrDead) {
			t.Errorf("carried out after %s: %v", done, err)
		}
	})
}

func TestCallWithoutADeadlineIsNoticed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *simtest.Wire) {
		if _, _, err := call(t, w); err != nil || w.Endless() != "" {
			t.Errorf("error %v, endless %q", err, w.Endless())
		}
		_ = simtest.Do(t.Context(), w, "other", "", func(context.Context) error { return nil })
		if w.Endless() != "other" {
			t.Errorf("endless %q", w.Endless())
		}
	})
}

func TestClockJumpsAndDrifts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := simtest.NewClock()
		c.Jump(-time.Minute)
		c.Drift(0.01)
		time.Sleep(100 * time.Second)
		if got := time.Until(c.Now()); got != -59*time.Second {
			t.Errorf("clock is %s ahead, want a minute less a second behind", got)
		}
	})
}
