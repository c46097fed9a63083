package waittest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/test/kit/waittest"
)

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, late := time.Now(), errors.New("not yet")
		soon := func() error {
			if time.Since(began) < time.Second {
				return late
			}
			return nil
		}
		if err := waittest.Within(t.Context(), time.Minute, soon); err != nil || time.Since(began) > 1100*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		never := func() error { return late }
		if err := waittest.Within(t.Context(), time.Minute, never); !errors.Is(err, late) {
			t.Errorf("%v, want the last complaint", err)
		}
		final := errors.New("for ever")
		if err := waittest.Within(t.Context(), time.Hour, func() error { return waittest.Final(final) }); !errors.Is(err, final) || time.Since(began) > 5*time.Minute {
			t.Errorf("%v after %s, want the final complaint at once", err, time.Since(began))
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := waittest.Within(ended, time.Hour, never); !errors.Is(err, late) {
			t.Errorf("%v, want the complaint", err)
		}
	})
}
