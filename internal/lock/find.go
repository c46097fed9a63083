package lock

import (
	"cmp"
	"context"
	"math"
	"strings"
	"time"
)

// Query says which locks are looked for. Zero values ask for all.
type Query struct {
	// Region is that of the locks. Required.
	Region string
	// Key is that of one lock; empty is for all.
	Key string
	// Parts are texts that the descriptor has between two colons, or at its end; one may be
	// several parts in a row. A provider may return locks that have not all of them.
	Parts []string
	// Node is the name of the holder.
	Node string
	// OlderThan is the least time since the acquisition, and Expired asks for locks whose
	// lease is over.
	OlderThan time.Duration
	Expired   bool
	// After is the last one of the page before; the zero value is before the first.
	After Held
	// Limit is the most that is returned. Required.
	Limit int
}

// Held is a lock, or one of several holders of it, as it stands.
type Held struct {
	// Grant has the request, without the place, and the acquisition. Began is not known.
	Grant
	// Row is the key under which the provider keeps it, for [Query.After].
	Row string
	// Age is the time since the acquisition, and Left that until the lease is over if it
	// is not renewed: less than 0 when it is over, [Endless] for one that does not end by itself.
	Age, Left time.Duration
	// Waiting is how many stand in line for the lock.
	Waiting int
	// Mark is a text of the provider's that is another one after each renewal; see
	// [Stealer].
	Mark string
}

// Compare orders as [Finder] does.
func (h Held) Compare(other Held) int {
	return cmp.Or(strings.Compare(h.Row, other.Row), strings.Compare(h.Term, other.Term))
}

// Endless is the [Held.Left] of a lock that another kind of client keeps without an end.
const Endless = time.Duration(math.MaxInt64)

// Finder lists locks.
type Finder interface {
	// Find returns locks in the order of their rows and terms. Fewer than the limit are
	// the last ones.
	Find(ctx context.Context, q Query) ([]Held, error)
}
