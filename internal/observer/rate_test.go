package observer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

func withRate(s *observer.Spec) { s.MaxRate = 10 }

// A chunk of three rows is free, and each row after it waits 100 ms.
func TestRateOfRowsIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew, withRate)
		s.put(0, 30)
		began := time.Now()
		s.poll()
		equal(t, "time for 30 rows", time.Since(began), 2700*time.Millisecond)
		equal(t, "events", len(s.story()), 30)
	})
}

func TestRateIsSharedByPollsOfAnObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectSnapshot, noTimestamp, withRate)
		s.put(0, 9)
		o, began := s.observer(), time.Now()
		for range 4 {
			if _, err := o.Poll(t.Context(), s.src, s.db.Acquire()); err != nil {
				t.Fatal(err)
			}
		}
		equal(t, "time for four polls", time.Since(began), 3300*time.Millisecond)
	})
}

// The end of a poll comes when it is due, not when the rate foresees it.
func TestPollThatWaitsForItsRateEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew, withRate)
		s.put(0, 30)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 1050*time.Millisecond, errLost)
		defer cancel()
		began := time.Now()
		_, err := s.observer().Poll(ctx, s.src, s.db.Acquire())
		if !errors.Is(err, errLost) {
			t.Fatalf("got %v", err)
		}
		equal(t, "ended after", time.Since(began), 1050*time.Millisecond)
		equal(t, "events", len(s.story()), 12)
	})
}

// Rows that a poll did not wait for to the end are not held against the next.
func TestPollThatEndedOwesNoRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew, withRate)
		s.put(0, 30)
		o := s.observer()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errLost)
		defer cancel()
		if _, err := o.Poll(ctx, s.src, s.db.Acquire()); !errors.Is(err, errLost) {
			t.Fatalf("got %v", err)
		}
		began := time.Now()
		if _, err := o.Poll(t.Context(), s.src, s.db.Acquire()); err != nil {
			t.Fatal(err)
		}
		equal(t, "time for 28 rows, of which half a one was saved", time.Since(began), 2750*time.Millisecond)
	})
}

// Chunks of a normal size would take longer than a poll may at a low rate.
func TestChunksAreNoLargerThanASecondsRows(t *testing.T) {
	t.Parallel()
	for rate, chunks := range map[float64]int{0.5: 6, 2: 3, 10: 2} {
		synctest.Test(t, func(t *testing.T) {
			s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.MaxRate = rate })
			s.put(0, 6)
			s.poll()
			equal(t, "chunks", len(s.db.Chunks(stream)), chunks)
		})
	}
}

func TestSweepKeepsToTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := history(t, observer.DetectNew, 40, withRate)
		id := s.db.StartSweep(stream, observer.SweepBackfill, "", "").ID
		began := time.Now()
		s.sweep(id, observer.Budget{})
		if took := time.Since(began); took < 1500*time.Millisecond {
			t.Fatalf("20 rows in %s", took)
		}
		equal(t, "events", len(s.story()), 40)
	})
}
