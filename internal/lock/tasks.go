package lock

import "context"

// Queue is a list of tasks, each with a lock of its own whose resource it is.
type Queue interface {
	// Next returns the tasks that a query finds, in the order in which they are due, without
	// most of those that are locked. keyOf is the key of a task's lock in that region. The
	// error is of the query too.
	Next(ctx context.Context, query, region string, keyOf func(task string) string) (tasks []string, err error)
	// Due says whether the query still finds a task. It is asked while its lock is held:
	// another may have done the task since Next.
	Due(ctx context.Context, task, query string) (bool, error)
	// Finish notes how a task has ended, while its lock is held.
	Finish(ctx context.Context, task, query string, end End) error
}

// End is how a task has ended.
type End int

const (
	// Done means that the query does not find the task again.
	Done End = iota
	// Closed means that no query does.
	Closed
	// Failed means that no query does until a person has looked at it.
	Failed
)
