package lock

import "context"

// Place is where a caller stands in the line of those who wait for a lock. The zero value is
// that of a caller who does not wait: behind all who do, with the priority 0.
type Place struct {
	// ID names the waiting caller and no other.
	ID string
	// Priority comes first: a greater one is ahead of a lesser.
	Priority int
	// Ticket comes second: a lesser one is ahead of a greater. The provider gives each
	// caller one; 0 is none.
	Ticket int64
}

// Turn is what a provider says to a caller who waits.
type Turn struct {
	// Ticket is that of the caller's place.
	Ticket int64
	// Come reports whether neither a holder nor another who waits is in the way of the
	// request.
	Come bool
}

// Line lets callers wait in an order: the provider grants no lock past one who is
// ahead and wants the same key in a mode that does not go with the one that is granted. A
// caller who wants several locks has a request for each, with one [Place] in all: it stands
// in all their lines, so that they become free for it at the same time. There is one
// exception, because they would wait for each other: while somebody waits for a lock that a
// caller holds (see [Request.Holds]), this caller waits for nobody who waits.
type Line interface {
	// Wait notes that the callers with these requests wait, and answers in the order of
	// the requests. A caller who is not noted again for some seconds loses its place, and
	// so does one who acquires the locks with it. An acquisition that runs at the same time
	// may leave the place: call Leave after both.
	Wait(ctx context.Context, requests []Request) ([]Turn, error)
	// Leave takes the callers out of all lines in which they stand.
	Leave(ctx context.Context, requests []Request) error
}
