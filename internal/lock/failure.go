package lock

import "context"

// Failure is how often a lock was not to be had because another had it.
type Failure struct {
	Region, Key string
	// Subject and Predicate are those of the callers.
	Subject, Predicate string
	// Count is how many acquisitions have failed.
	Count int64
}

// FailureLog keeps how often locks were not to be had, for people.
type FailureLog interface {
	// NoteFailures adds the failures to what is known. They differ in their region, key or
	// predicate. After an error they may have been added all the same.
	NoteFailures(ctx context.Context, failures []Failure) error
}
