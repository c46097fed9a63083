package observer

import "errors"

var (
	// ErrQueryChanged reports that the cursor belongs to another query: its
	// table, SQL, key, timestamp or detection. What was remembered says
	// nothing about the rows of this one, so a person has to decide.
	ErrQueryChanged = errors.New("query has changed since the cursor was written")
	// ErrMostlyPoison reports a chunk of which most rows could not be read.
	// Nothing of that chunk was committed.
	ErrMostlyPoison = errors.New("most rows of a chunk are poison")
	// ErrMassDisappearance reports a snapshot in which too many of the live
	// rows are missing to believe it. None was marked gone; what the snapshot
	// did contain was committed.
	ErrMassDisappearance = errors.New("too many rows are missing from the snapshot")
	// ErrOutOfOrder reports that the source returned a row with a timestamp
	// below that of the row before. A low-water mark taken from such rows
	// would lose some.
	ErrOutOfOrder = errors.New("source returned rows out of order")
)
