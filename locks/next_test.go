package locks_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

// tasks is a provider with a queue, which finds all tasks that are not done.
type tasks struct {
	*locktest.Memory
	found   []string
	since   time.Time // they are found
	done    map[string]locks.End
	looks   int
	dueErr  error
	endErrs int
}

func (q *tasks) Capabilities() lock.Capabilities {
	c := q.Memory.Capabilities()
	c.Queue = q
	return c
}

func (q *tasks) Next(context.Context, string, string, func(string) string) ([]string, error) {
	if q.looks++; time.Now().Before(q.since) {
		return nil, nil
	}
	return slices.Clone(q.found), nil
}

func (q *tasks) Due(_ context.Context, task, _ string) (bool, error) {
	if task == "broken" {
		return false, errors.New("the reference is at a commit that is none of observerd")
	}
	_, done := q.done[task]
	return !done, q.dueErr
}

func (q *tasks) Finish(_ context.Context, task, _ string, end locks.End) error {
	if q.endErrs--; q.endErrs >= 0 {
		return errors.New("502")
	}
	q.done[task] = end
	return nil
}

func newTasks(t *testing.T, found ...string) (*locks.Manager, *tasks) {
	t.Helper()
	q := &tasks{Memory: &locktest.Memory{}, found: found, done: make(map[string]locks.End)}
	m, err := locks.Open(t.Context(), locks.Options{Provider: q})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m, q
}

var anyTask = locks.Descriptor{Subject: "page", Predicate: "processing"}

func TestNextTask(t *testing.T) {
	t.Parallel()
	m, q := newTasks(t, "1", "2", "3")
	q.done["1"] = locks.Done // since it was found
	held, err := m.Acquire(t.Context(), locks.Descriptor{Subject: "page", Predicate: "processing", Resources: []string{"2"}})
	if err != nil {
		t.Fatal(err)
	}
	task, err := m.AcquireNext(t.Context(), "", anyTask, locks.FailFast())
	if err != nil || task.Name != "3" || task.Descriptor().Resources[0] != "3" {
		t.Fatal(err, task)
	}
	if _, err := m.AcquireNext(t.Context(), "", anyTask, locks.FailFast()); !errors.Is(err, locks.ErrNoTask) {
		t.Errorf("a second one: %v", err)
	}
	if err := errors.Join(task.Finish(t.Context(), locks.Failed), task.Release(t.Context()), held.Release(t.Context())); err != nil || q.done["3"] != locks.Failed {
		t.Error(err, q.done)
	}
	if err := task.Finish(t.Context(), locks.Closed); err == nil || q.done["3"] != locks.Failed {
		t.Errorf("an end after the release is noted: %v, %v", err, q.done)
	}
	// The lock of a task that may be done is not kept.
	q.dueErr = errors.New("502")
	if _, err := m.AcquireNext(t.Context(), "", anyTask, locks.FailFast()); !errors.Is(err, q.dueErr) {
		t.Errorf("a task that may be done: %v", err)
	}
	all, err := m.Find(t.Context(), locks.Filter{Limit: 9})
	if err != nil || len(all) != 0 {
		t.Errorf("held are %v, %v", all, err)
	}
}

// One task that cannot be looked at keeps nobody from the others.
func TestBrokenTaskIsPassedOver(t *testing.T) {
	t.Parallel()
	m, q := newTasks(t, "broken", "2")
	task, err := m.AcquireNext(t.Context(), "", anyTask, locks.FailFast())
	if err != nil || task.Name != "2" {
		t.Fatal(err, task)
	}
	q.found = q.found[:1]
	if _, err := m.AcquireNext(t.Context(), "", anyTask, locks.FailFast()); err == nil || errors.Is(err, locks.ErrHeld) {
		t.Errorf("alone: %v", err)
	}
	if err := task.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNextTaskIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, q := newTasks(t)
		began := time.Now()
		if _, err := m.AcquireNext(t.Context(), "", anyTask, locks.Within(time.Minute)); !errors.Is(err, locks.ErrNoTask) || time.Since(began) < time.Minute || q.looks < 8 || q.looks > 26 {
			t.Errorf("after %s and %d looks: %v", time.Since(began), q.looks, err)
		}
		q.found, q.since = []string{"1"}, time.Now().Add(3*time.Second)
		task, err := m.AcquireNext(t.Context(), "", anyTask)
		if err != nil {
			t.Fatal(err)
		}
		q.endErrs = 2
		if err := task.Finish(t.Context(), locks.Done); err != nil || len(q.done) != 1 {
			t.Errorf("an end that is noted at the third try: %v", err)
		}
		q.endErrs = 9
		if err := task.Finish(t.Context(), locks.Done); err == nil {
			t.Error("an end that is not noted is no error")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		q.found = nil
		if _, err := m.AcquireNext(ctx, "", anyTask); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the end of the context: %v", err)
		}
		if err := task.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestNextTaskOfAProviderWithoutAQueue(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{})
	if _, err := m.AcquireNext(t.Context(), "", anyTask); !errors.Is(err, locks.ErrUnsupported) {
		t.Error(err)
	}
}
