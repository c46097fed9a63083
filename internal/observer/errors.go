package observer

import "errors"

var (
	// ErrQueryChanged reports that the cursor belongs to another query: its
	// table, SQL, key, timestamp or detection. A person has to decide, because
	// what was observed says nothing about the rows of this one.
	ErrQueryChanged = errors.New("query has changed since the cursor was written")
	// ErrOtherDefinition reports that the cluster polls the observer by another
	// definition, which is not older than this node's. The turn is left to a node that
	// has it.
	ErrOtherDefinition = errors.New("the other nodes define the observer in another way")
	// ErrNextTick is the cause with which a caller ends a poll because the next is
	// due. That poll is full, and has no error.
	ErrNextTick = errors.New("the next poll is due")
	// ErrMostlyPoison reports a chunk of which most rows could not be read.
	// Nothing of that chunk was committed.
	ErrMostlyPoison = errors.New("most rows of a chunk are poison")
	// ErrMassDisappearance reports a snapshot that lacks too many of the live rows.
	// None was marked gone; the rows of the snapshot were committed.
	ErrMassDisappearance = errors.New("too many rows are missing from the snapshot")
	// ErrSourcesAlternate reports that two databases answer at one address. Reading
	// each from its beginning, in turns, would never end.
	ErrSourcesAlternate = errors.New("two databases answer in turns at one address")
	// ErrOutOfOrder reports a row with a timestamp below that of the row before. A
	// low-water mark taken from such rows would lose some.
	ErrOutOfOrder = errors.New("source returned rows out of order")
	// ErrColumnsChanged reports that a column of the data is missing or has another
	// type, which the readers of the events may not expect, or that one was added by which all
	// rows would become events. Nothing was committed.
	ErrColumnsChanged = errors.New("columns of the source have changed")
	// ErrSourceReplaced reports that a sweep found another database than the
	// cursor's. The sweep goes on after the next poll, which begins with it anew.
	ErrSourceReplaced = errors.New("source is another database than the cursor knows")
	// ErrNoKeyLookup reports that a source finds no row by the text of its key.
	ErrNoKeyLookup = errors.New("rows are not found by the text of their key, with which its columns do not compare")
	// ErrReadAnew reports a retry in a stream that was reset: the next poll reads its rows.
	ErrReadAnew = errors.New("the observer was reset, or never polled, so its next poll reads all of its rows")
	// ErrNotSwept reports a sweep of an observer that reads all rows anyway.
	ErrNotSwept = errors.New("an observer that reads all rows has no sweeps")
)
