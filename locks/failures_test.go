package locks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

// failureLog is a provider that keeps what is noted.
type failureLog struct {
	*locktest.Memory

	mu    sync.Mutex
	notes [][]lock.Failure
	err   error
}

func (p *failureLog) Capabilities() locks.Capabilities {
	c := p.Memory.Capabilities()
	c.FailureLog = p
	return c
}

// NoteFailures implements [lock.FailureLog].
func (p *failureLog) NoteFailures(ctx context.Context, failures []lock.Failure) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := ctx.Deadline(); !ok {
		return errors.New("a note without a deadline")
	}
	if p.err == nil {
		slices.SortFunc(failures, func(a, b lock.Failure) int { return strings.Compare(a.Key, b.Key) })
		p.notes = append(p.notes, failures)
	}
	return p.err
}

func (p *failureLog) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// noted returns what was noted since the last call.
func (p *failureLog) noted() [][]lock.Failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	notes := p.notes
	p.notes = nil
	return notes
}

func openWithLog(t *testing.T) (*locks.Manager, *failureLog) {
	t.Helper()
	p := &failureLog{Memory: &locktest.Memory{}}
	m, err := locks.Open(t.Context(), locks.Options{Provider: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return m, p
}

func TestFailuresAreNotedInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := openWithLog(t)
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, note := range p.noted() {
				got = append(got, fmt.Sprint(note))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q was noted, want %q", what, got, want)
			}
		}
		refused := func(d locks.Descriptor) {
			t.Helper()
			if !isHeld(t, m, d) {
				t.Fatalf("%s is not held", d)
			}
		}
		acquire(t, m, t.Context(), fileset)
		acquire(t, m, t.Context(), page)
		reader := fileset
		reader.Predicate = "reading"
		refused(fileset)
		refused(fileset)
		refused(reader)
		if _, err := m.AcquireAll(t.Context(), []locks.Descriptor{audit, page}, locks.FailFast()); !errors.Is(err, locks.ErrHeld) {
			t.Fatal(err)
		}
		p.Fail(errors.New("down"))
		if _, err := m.Acquire(t.Context(), fileset); errors.Is(err, locks.ErrHeld) {
			t.Fatal(err)
		}
		p.Fail(nil)
		expect("at once")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		notes := p.noted()
		if len(notes) != 1 || len(notes[0]) != 3 {
			t.Fatalf("%v was noted, want one batch of three", notes)
		}
		for _, want := range []lock.Failure{
			{Region: "LOCKS", Key: "fileset:fs-1", Subject: "fileset", Predicate: "processing", Count: 2},
			{Region: "LOCKS", Key: "fileset:fs-1", Subject: "fileset", Predicate: "reading", Count: 1},
			{Region: "LOCKS", Key: "page:fs-1:doc-2:3", Subject: "page", Predicate: "extracting", Count: 1},
		} {
			if !slices.Contains(notes[0], want) {
				t.Errorf("%+v is not among %+v", want, notes[0])
			}
		}
		time.Sleep(time.Minute)
		expect("nothing has failed")

		p.fail(errors.New("down"))
		refused(fileset)
		time.Sleep(time.Minute)
		refused(fileset)
		p.fail(nil)
		time.Sleep(10 * time.Second)
		expect("after an outage", "[{LOCKS fileset:fs-1 fileset processing 2}]")
		refused(page)
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("at the end", "[{LOCKS page:fs-1:doc-2:3 page extracting 1}]")
	})
}

// TestFailuresAreBounded has more locks fail than are counted, while nothing can be noted.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := openWithLog(t)
		p.fail(errors.New("down"))
		for i := range 1200 {
			d := below(fileset, "page", fmt.Sprint(i))
			l := acquire(t, m, t.Context(), d)
			if !isHeld(t, m, d) {
				t.Fatal("not held")
			}
			release(t, l)
			if i%400 == 0 {
				time.Sleep(15 * time.Second)
			}
		}
		p.fail(nil)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		notes := p.noted()
		if len(notes) != 1 || len(notes[0]) != 1000 {
			t.Errorf("%d batches were noted, the first of %d; want one of 1000", len(notes), len(append(notes, nil)[0]))
		}
	})
}

// hangingLog answers when its caller does not wait any more.
type hangingLog struct{ locktest.Memory }

func (p *hangingLog) Capabilities() locks.Capabilities {
	c := p.Memory.Capabilities()
	c.FailureLog = p
	return c
}

// NoteFailures implements [lock.FailureLog].
func (*hangingLog) NoteFailures(ctx context.Context, _ []lock.Failure) error {
	<-ctx.Done()
	return ctx.Err()
}

// Locks that were released do not stand because a count of failures cannot be written.
func TestCloseDoesNotWaitForFailuresToBeNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, err := locks.Open(t.Context(), locks.Options{Provider: &hangingLog{}})
		if err != nil {
			t.Fatal(err)
		}
		l := acquire(t, m, t.Context(), page)
		if _, err := m.Acquire(t.Context(), page, locks.FailFast()); !errors.Is(err, locks.ErrHeld) {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second + time.Millisecond) // The note hangs now.
		release(t, l)
		began := time.Now()
		if err := m.Close(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("close took %s: %v", time.Since(began), err)
		}
	})
}
