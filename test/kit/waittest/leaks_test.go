package waittest

import (
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// tests are those of a package, with their exit code.
type tests func() int

func (t tests) Run() int { return t() }

func TestGoroutinesMayTakeTheirTime(t *testing.T) {
	var ended atomic.Bool
	code := patient{tests(func() int {
		go func() {
			<-time.After(time.Second) // More than goleak's own patience.
			ended.Store(true)
		}()
		return 0
	}), time.Minute}.Run()
	if err := goleak.Find(); code != 0 || !ended.Load() || err != nil {
		t.Errorf("exit code %d, ended: %v, %v", code, ended.Load(), err)
	}
}

func TestLeaksAreLeftToGoleak(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	code := patient{tests(func() int {
		go func() { <-end }()
		return 0
	}), 10 * time.Millisecond}.Run()
	if code != 0 || goleak.Find() == nil {
		t.Errorf("exit code %d, and no leak", code)
	}
}

func TestFailuresAreNotWaitedFor(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	begun := time.Now()
	code := patient{tests(func() int {
		go func() { <-end }()
		return 3
	}), time.Hour}.Run()
	if code != 3 || time.Since(begun) > time.Minute {
		t.Errorf("exit code %d after %s", code, time.Since(begun))
	}
}
