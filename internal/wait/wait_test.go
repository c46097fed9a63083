package wait_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		closed := make(chan struct{})
		close(closed)
		for name, tc := range map[string]struct {
			ctx    context.Context
			d      time.Duration
			notify <-chan struct{}
			want   wait.End
			took   time.Duration
		}{
			"the time is over":         {t.Context(), time.Minute, nil, wait.Elapsed, time.Minute},
			"no time":                  {t.Context(), -1, closed, wait.Elapsed, 0},
			"notified":                 {t.Context(), time.Minute, closed, wait.Notified, 0},
			"the context ends":         {soon, time.Minute, nil, wait.Canceled, time.Second},
			"the context ended before": {ended, 0, closed, wait.Canceled, 0},
		} {
			began := time.Now()
			if got := wait.Until(tc.ctx, tc.d, tc.notify); got != tc.want || name != "the context ends" && time.Since(began) != tc.took {
				t.Errorf("%s: %v after %s, want %v after %s", name, got, time.Since(began), tc.want, tc.took)
			}
		}
		if wait.For(ended, time.Hour) || !wait.For(t.Context(), time.Hour) {
			t.Error("the end of a context was taken for the end of the time, or the other way round")
		}
	})
}

func TestGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var work sync.WaitGroup
		release := make(chan struct{})
		work.Go(func() { <-release })
		why := errors.New("the stop took too long")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		if err := wait.Group(ctx, &work, "delivery"); !errors.Is(err, why) {
			t.Errorf("a group that hangs: %v", err)
		}
		close(release)
		if err := wait.Group(t.Context(), &work, "delivery"); err != nil {
			t.Error(err)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := wait.NewBackoff(time.Second, 8*time.Second)
	for _, seconds := range []int{1, 2, 4, 8, 8, 8} {
		about := time.Duration(seconds) * time.Second
		if pause := b.NextBackOff(); pause < about/2 || pause > about*3/2 {
			t.Errorf("a pause of %s, want about %s", pause, about)
		}
	}
	b.Reset()
	if pause := b.NextBackOff(); pause > 1500*time.Millisecond {
		t.Errorf("the first pause after a reset is %s", pause)
	}
}

func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o wait.Outage
		if _, over := o.End(); over {
			t.Error("an outage that never began is over")
		}
		if !o.Begin() || o.Begin() {
			t.Error("an outage does not begin once")
		}
		time.Sleep(time.Hour)
		if lasted, over := o.End(); !over || lasted != time.Hour {
			t.Errorf("over is %t after %s, want an hour", over, lasted)
		}
		if !o.Begin() {
			t.Error("the second outage is not a new one")
		}
	})
}
