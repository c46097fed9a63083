package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/wait"
)

// End is how the work on a task has ended; see [Task.Finish].
type End = lock.End

// The ends of a task. What they do with it is the provider's.
const (
	Done   = lock.Done
	Closed = lock.Closed
	Failed = lock.Failed
)

// ErrNoTask reports that a query finds no task that nobody has locked. It is [ErrHeld].
var ErrNoTask error = noTaskError{}

type noTaskError struct{}

func (noTaskError) Error() string { return "no task is free" }

func (noTaskError) Is(target error) bool { return target == ErrHeld }

// leastLook is about the shortest pause between two looks for a task: each is several requests.
const leastLook = 5 * time.Second

// Task is a task whose lock is held.
type Task struct {
	*Lease
	// Name is the resource of the lock.
	Name string

	queue lock.Queue
	query string
}

// AcquireNext takes the lock of the first task in the provider's queue that the query finds and
// nobody has locked; the lock's only resource is the task. What the descriptor has as resources
// is not used. While there is none, it looks again as the options say, about every 5 s at most.
//
// Callers that lose the race for a task choose at random among twice as many, so that many that
// come at once do not all want the same.
//
// The error is [ErrNoTask] when there was none for as long as AcquireNext was to wait,
// [ErrUnsupported] where the provider has no queue, and else that of [Manager.Acquire].
func (m *Manager) AcquireNext(ctx context.Context, query string, d Descriptor, options ...Option) (*Task, error) {
	if m.can.Queue == nil {
		return nil, fmt.Errorf("next task: %w", ErrUnsupported)
	}
	how, err := m.waitingOf(options)
	if err == nil {
		d.Resources = []string{"1"}
		err = m.Check(d)
	}
	if err != nil {
		return nil, err
	}
	once := append(slices.Clone(options), FailFast())
	task, err := m.next(ctx, query, d, once)
	for pause := range how.pausesAfter(&err) {
		if !errors.Is(err, ErrHeld) {
			break
		}
		if !wait.For(ctx, max(pause, leastLook/2+rand.N(leastLook))) {
			return nil, context.Cause(ctx)
		}
		task, err = m.next(ctx, query, d, once)
	}
	return task, err
}

// next looks once for a task.
func (m *Manager) next(ctx context.Context, query string, d Descriptor, options []Option) (*Task, error) {
	q := m.can.Queue
	tasks, err := q.Next(ctx, query, m.opts.Region, func(task string) string {
		d.Resources = []string{task}
		return d.Key()
	})
	if err != nil {
		return nil, fmt.Errorf("next task: %w", err)
	}
	var wrong []error // with tasks, of which another may be free
	for lost := 0; len(tasks) > 0 && ctx.Err() == nil; lost++ {
		i := rand.IntN(min(len(tasks), 1<<min(lost, 16)))
		d.Resources = []string{tasks[i]}
		l, err := m.Acquire(ctx, d, options...)
		tasks = slices.Delete(tasks, i, i+1)
		if errors.Is(err, ErrHeld) {
			continue
		}
		due, failed := q.Due(ctx, d.Resources[0], query)
		switch {
		case err == nil && failed == nil && due:
			return &Task{l, d.Resources[0], q, query}, nil
		case err == nil:
			err = l.Release(ctx)
		case failed == nil && !due: // Another has done it.
			err = nil
		}
		wrong = append(wrong, err, failed)
	}
	if err := errors.Join(append(wrong, context.Cause(ctx))...); err != nil {
		return nil, err
	}
	return nil, ErrNoTask
}

// Finish notes how the task has ended; release the lease after it. What cannot be noted is tried
// again while the lease is held. After an error, or without Finish, the task comes again. The error of a
// lease that was lost is [ErrLost]: the task is another's then.
func (t *Task) Finish(ctx context.Context, end End) error {
	if t.Context().Err() != nil { // Another may have the task.
		return context.Cause(t.Context())
	}
	err := t.queue.Finish(ctx, t.Name, t.query, end)
	for pause := range Backoff(time.Second, 3) {
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-t.Context().Done():
			return errors.Join(err, context.Cause(t.Context()))
		case <-time.After(pause):
		}
		err = t.queue.Finish(ctx, t.Name, t.query, end)
	}
	return err
}
