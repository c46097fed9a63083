package observer

import "errors"

var (
	// ErrQueryChanged reports that the cursor belongs to another query: its
	// table, SQL, key, timestamp or detection. What was remembered says
	// nothing about the rows of this one, so a person has to decide.
	ErrQueryChanged = errors.New("query has changed since the cursor was written")
	// ErrOtherDefinition reports that the cluster polls the observer by another
	// definition than this node has, and that this node's is not the later one. The
	// turn is left to a node with that definition.
	ErrOtherDefinition = errors.New("the other nodes define the observer in another way")
	// ErrNextTick is the cause with which a caller ends the context of a poll that
	// has only the time until the next is due. That poll is full, and has no error.
	ErrNextTick = errors.New("the next poll is due")
	// ErrMostlyPoison reports a chunk of which most rows could not be read.
	// Nothing of that chunk was committed.
	ErrMostlyPoison = errors.New("most rows of a chunk are poison")
	// ErrMassDisappearance reports a snapshot in which too many of the live
	// rows are missing to believe it. None was marked gone; what the snapshot
	// did contain was committed.
	ErrMassDisappearance = errors.New("too many rows are missing from the snapshot")
	// ErrSourcesAlternate reports that a database answers which was there before
	// another had taken its place: two of them stand behind one address. Reading
	// each from its beginning, in turns, would hurt both and end never.
	ErrSourcesAlternate = errors.New("two databases answer in turns at one address")
	// ErrOutOfOrder reports that the source returned a row with a timestamp
	// below that of the row before. A low-water mark taken from such rows
	// would lose some.
	ErrOutOfOrder = errors.New("source returned rows out of order")
	// ErrColumnsChanged reports that the source has taken away a column of the
	// data, or has given it another type: whoever reads the events would be
	// surprised. Nothing was committed. A column that is added passes through.
	ErrColumnsChanged = errors.New("columns of the source have changed")
	// ErrSourceReplaced reports that a sweep met another database than the
	// cursor knows. The next poll begins that one anew, where the stream began;
	// the sweep goes on after that.
	ErrSourceReplaced = errors.New("source is another database than the cursor knows")
	// ErrNotSwept reports a sweep of an observer that has none: one that reads
	// everything in every poll has nothing left to sweep.
	ErrNotSwept = errors.New("an observer that reads all rows has no sweeps")
)
