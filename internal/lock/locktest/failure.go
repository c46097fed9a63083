package locktest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/lock"
)

// failureLog is a client of a provider that keeps failures, which the test can read.
func failureLog(t *testing.T, h Harness) lock.FailureLog {
	t.Helper()
	if h.Failures == nil {
		t.Fatal("a provider that keeps failures has no way to read them here")
	}
	return h.Provider().Capabilities().FailureLog
}

func note(t *testing.T, l lock.FailureLog, failures ...lock.Failure) {
	t.Helper()
	if err := l.NoteFailures(t.Context(), failures); err != nil {
		t.Errorf("note %d failures: %v", len(failures), err)
	}
}

// noted checks that these failures are known, and no other.
func noted(t *testing.T, h Harness, want ...lock.Failure) {
	t.Helper()
	byText := func(failures []lock.Failure) (texts []string) {
		for _, f := range failures {
			texts = append(texts, fmt.Sprintf("%+v", f))
		}
		slices.Sort(texts)
		return texts
	}
	if got := byText(h.Failures(t)); !slices.Equal(got, byText(want)) {
		t.Errorf("known are\n%q\nwant\n%q", got, byText(want))
	}
}

// failures are of locks of which each two are much alike.
func failures() []lock.Failure {
	long := "page:of a document whose name is longer than many a table allows:"
	return []lock.Failure{
		{Region: "DEFAULT", Key: "page:1", Subject: "page", Predicate: "writing", Count: 3},
		{Region: "DEFAULT", Key: "page:1", Subject: "page", Predicate: "reading", Count: 2},
		{Region: "OTHER", Key: "page:1", Subject: "page", Predicate: "writing", Count: 100},
		{Region: "DEFAULT", Key: "page:it's \"2\"", Subject: "page", Predicate: "writing", Count: 1 << 40},
		{Region: "DEFAULT", Key: long + "1", Subject: "page", Predicate: "writing", Count: 5},
		{Region: "DEFAULT", Key: long + "2", Subject: "page", Predicate: "writing", Count: 6},
	}
}

func failuresAddUp(t *testing.T, h Harness) {
	l := failureLog(t, h)
	note(t, l)
	noted(t, h)
	all := failures()
	note(t, l, all...)
	noted(t, h, all...)
	again := all[1]
	again.Count = 40
	note(t, l, again)
	note(t, l, again)
	all[1].Count += 80
	noted(t, h, all...)
}

// failuresOfMany has processes note the same failures at the same time, in different orders.
func failuresOfMany(t *testing.T, h Harness) {
	const rounds = 25
	one, other := failureLog(t, h), failureLog(t, h)
	all := failures()
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	var notes sync.WaitGroup
	for range rounds {
		notes.Go(func() { note(t, one, all...) })
		notes.Go(func() { note(t, other, backwards...) })
	}
	notes.Wait()
	for i := range all {
		all[i].Count *= 2 * rounds
	}
	noted(t, h, all...)
}
