package app

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/systemd/watchdog"
)

// TestAStopMayTakeItsTime covers loops that end before the node has: they are not
// stuck, but a stop that outlives its deadline is.
func TestAStopMayTakeItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &App{loops: &watchdog.Loops{}, reloads: NewReloads()}
		a.loops.Beat("loop", time.Second)
		time.Sleep(time.Minute)
		if got := a.Stuck(); !slices.Equal(got, []string{"loop"}) {
			t.Errorf("at work: %q", got)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		a.set(func(s *state) { s.stopping = true })
		done := a.beatWhileStopping(ctx)
		time.Sleep(time.Minute)
		if got := a.Stuck(); len(got) > 0 {
			t.Errorf("while it stops: %q", got)
		}
		time.Sleep(time.Minute)
		if got := a.Stuck(); !slices.Equal(got, []string{"stop"}) {
			t.Errorf("a minute late: %q", got)
		}
		done()
		if got := a.Stuck(); len(got) > 0 {
			t.Errorf("after the stop: %q", got)
		}
	})
}

// TestWhatIsLeftOfAFormerNodeHangs covers a reload whose former node has not ended.
func TestWhatIsLeftOfAFormerNodeHangs(t *testing.T) {
	t.Parallel()
	a := &App{loops: &watchdog.Loops{}, reloads: NewReloads()}
	for range 2 {
		gone := make(chan struct{})
		a.reloads.leave(gone)
		if got := a.Stuck(); !slices.Equal(got, []string{"former node"}) {
			t.Errorf("while it goes on: %q", got)
		}
		a.set(func(s *state) { s.stopping = true })
		if got := a.Stuck(); len(got) > 0 {
			t.Errorf("while this one stops: %q", got)
		}
		a.set(func(s *state) { s.stopping = false })
		close(gone)
		if got := a.Stuck(); len(got) > 0 {
			t.Errorf("when it has ended: %q", got)
		}
	}
}
