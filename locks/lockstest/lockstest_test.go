package lockstest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/lockstest"
)

// A program tests what it does when it loses a lock, and when the database is down.
func TestProgramUnderTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var memory lockstest.Memory
		a, b := open(t, &memory), open(t, &memory)
		l, err := a.Acquire(t.Context(), locks.Name("nightly"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Acquire(t.Context(), locks.Name("nightly"), locks.FailFast()); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("a second holder: %v", err)
		}
		memory.Expire(l)
		other, err := b.Acquire(t.Context(), locks.Name("nightly"), locks.FailFast())
		if err != nil {
			t.Fatal(err)
		}
		<-l.Context().Done()
		if cause := context.Cause(l.Context()); !errors.Is(cause, locks.ErrLost) {
			t.Errorf("ended because of %v", cause)
		}
		down := errors.New("no route to host")
		memory.Fail(down)
		if _, err := a.Acquire(t.Context(), locks.Name("weekly")); !errors.Is(err, down) {
			t.Errorf("while the database is down: %v", err)
		}
		memory.Fail(nil)
		if err := other.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func open(t *testing.T, memory *lockstest.Memory) *locks.Manager {
	t.Helper()
	m, err := locks.Open(t.Context(), locks.Options{Provider: memory.Provider()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func ExampleMemory() {
	ctx := context.Background()
	var memory lockstest.Memory
	m, err := locks.Open(ctx, locks.Options{Provider: memory.Provider()})
	if err != nil {
		panic(err)
	}
	defer func() { _ = m.Close(ctx) }()
	err = m.Do(ctx, locks.Name("nightly"), func(_ context.Context, l *locks.Lease) error {
		fmt.Println("under", l.Descriptor())
		return nil
	})
	fmt.Println(err)
	// Output:
	// under lock:exclusive:name:processing:nightly
	// <nil>
}
