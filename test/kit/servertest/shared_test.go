package servertest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
)

// fake is a server that counts.
type fake struct{ closed int }

func (f *fake) Close() error {
	f.closed++
	return errors.New("it will not go")
}

type runner func() int

func (r runner) Run() int { return r() }

func TestSharedServerIsStartedOnceAndRemoved(t *testing.T) {
	t.Parallel()
	opened := 0
	s := servertest.Shared[*fake]{Name: "fake", Timeout: time.Minute, Open: func(context.Context) (*fake, error) {
		opened++
		return &fake{}, nil
	}}
	var server *fake
	code := s.Wrap(runner(func() int {
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				if _, err := s.Get(); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		server, _ = s.Get()
		return 0
	})).Run()
	if opened != 1 || server.closed != 1 {
		t.Errorf("opened %d times, closed %d times", opened, server.closed)
	}
	if code == 0 {
		t.Error("a server that could not be removed is no failure")
	}
}

func TestSharedServerThatIsNotNeededIsNotStarted(t *testing.T) {
	t.Parallel()
	s := servertest.Shared[*fake]{Timeout: time.Minute, Open: func(context.Context) (*fake, error) {
		t.Error("it was started")
		return &fake{}, nil
	}}
	if code := s.Wrap(runner(func() int { return 3 })).Run(); code != 3 {
		t.Errorf("exit code %d", code)
	}
}

func TestFailureOfASharedServerIsKept(t *testing.T) {
	t.Parallel()
	opened, broken := 0, errors.New("no programs")
	s := servertest.Shared[*fake]{Timeout: time.Minute, Open: func(context.Context) (*fake, error) {
		opened++
		return nil, broken
	}}
	for range 3 {
		if _, err := s.Get(); !errors.Is(err, broken) {
			t.Errorf("Get: %v", err)
		}
	}
	if opened != 1 {
		t.Errorf("tried %d times", opened)
	}
}
