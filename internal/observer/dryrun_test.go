package observer_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

func TestDryRunShowsWhatAPollWouldDo(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectChange, observer.DetectSnapshot} {
		s := setup(t, detect, noTimestamp)
		s.put(0, 10)
		s.poll()
		s.src.Delete(key(5))
		s.src.Put(key(6), "b")
		s.put(20, 8)
		s.src.Add(bad("b", 0))
		before, chunks := s.db.Cursor(stream), len(s.db.Chunks(stream))

		var shown []string
		dry := observer.DryRun(s.db.Acquire(), func(ch observer.Chunk) error {
			for _, e := range ch.Events {
				shown = append(shown, fmt.Sprintf("%s %s %d %s", e.Subject, e.Change, e.Version, e.ID))
			}
			for _, d := range ch.Dead {
				shown = append(shown, d.Reason)
			}
			return nil
		})
		stats, err := s.observer().Poll(t.Context(), s.src, dry)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "cursor", s.db.Cursor(stream), before)
		equal(t, "chunks", len(s.db.Chunks(stream)), chunks)

		equal(t, "statistics", stats, s.poll())
		var done []string
		for _, e := range s.db.Events(stream)[10:] {
			done = append(done, fmt.Sprintf("%s %s %d %s", e.Subject, e.Change, e.Version, e.ID))
		}
		equal(t, "shown", len(shown), len(done)+1)
		shown = remove(shown, errBad.Error())
		equalList(t, "events", shown, done...)
	}
}

func remove(list []string, item string) (rest []string) {
	for _, s := range list {
		if s != item {
			rest = append(rest, s)
		}
	}
	return rest
}

// A second dry poll on the same store goes on from the first.
func TestDryRunRemembersItsOwnChunks(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp)
	s.put(0, 10)
	s.poll()
	var shown []string
	dry := observer.DryRun(s.db.Acquire(), func(ch observer.Chunk) error {
		for i, e := range ch.Events {
			shown = append(shown, fmt.Sprintf("%d %s %s", ch.Before.LastSeq+int64(i)+1, e.Subject, e.Change))
		}
		return nil
	})
	o := s.observer()
	for i := range 3 {
		s.src.Delete(key(i))
		s.put(20+i, 1)
		if _, err := o.Poll(t.Context(), s.src, dry); err != nil {
			t.Fatal(err)
		}
	}
	equalList(t, "events", shown,
		"11 k0020 new", "12 k0000 gone", "13 k0021 new", "14 k0001 gone", "15 k0022 new", "16 k0002 gone")
	equal(t, "seq", s.db.Cursor(stream).LastSeq, 10)
}

func TestDryRunEndsWithItsVisitor(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 10)
	chunks := 0
	dry := observer.DryRun(s.db.Acquire(), func(observer.Chunk) error {
		chunks++
		return errBroken
	})
	if _, err := s.observer().Poll(t.Context(), s.src, dry); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	equal(t, "chunks", chunks, 1)
}
