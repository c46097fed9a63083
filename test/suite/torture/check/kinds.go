package check

// Kind is what a violation violates. Its text is stable: reports and lists of
// expectations name it.
type Kind string

// The kinds, from the source to the sinks.
const (
	// Lost is a row, or its last state, that has no event.
	Lost Kind = "lost"
	// Duplicated is an event, or a version of a row, that is in the log again.
	Duplicated Kind = "duplicated"
	// Unexpected is an event of what the source never committed.
	Unexpected Kind = "unexpected"
	// Reordered is an event of an earlier version of a row than one before it.
	Reordered Kind = "reordered"
	// Gap is a number that the versions of a row leave out.
	Gap Kind = "gap"
	// WrongChange is an event that says something else of a row than what
	// follows from the events before it, such as "changed" of a row not seen.
	WrongChange Kind = "wrong-change"
	// MassGone are more rows gone at once than may be without an operator's word.
	MassGone Kind = "mass-gone"
	// WrongDefinition is an event whose columns are not those of the cluster's
	// definition, or a definition that took a later one's place.
	WrongDefinition Kind = "wrong-definition"
	// HalfBatch is a commit some of whose events are missing or come from
	// another transaction, or an event without a commit.
	HalfBatch Kind = "half-batch"
	// CursorBackwards is a mark or a sequence that moves back.
	CursorBackwards Kind = "cursor-backwards"
	// CursorUnlinked is a change of a cursor that does not begin where the one
	// before it ended, or moves it without a new version.
	CursorUnlinked Kind = "cursor-unlinked"
	// StaleCommit is a write by a node that did not hold the lock.
	StaleCommit Kind = "stale-commit"
	// StaleCursor is a commit by a poll that cannot have seen the cursor as it
	// was: somebody else had moved it since the poll began.
	StaleCursor Kind = "stale-cursor"
	// PausedCommit is a commit to a stream that an operator had paused.
	PausedCommit Kind = "paused-commit"
	// StolenLease is a lock taken from a holder whose lease lived.
	StolenLease Kind = "stolen-lease"
	// ResurrectedLease is a lease that came back after it had ended.
	ResurrectedLease Kind = "resurrected-lease"
	// FreedAlive is a lock freed as a dead node's, whose holder lived and was
	// not disturbed.
	FreedAlive Kind = "freed-alive"
	// StaleWrite is a write under the guard of a general lock by one who did not hold it:
	// another that excludes it had it already.
	StaleWrite Kind = "stale-write"
	// StolenHold is a general lock that one had before the lease of another was over.
	StolenHold Kind = "stolen-hold"
	// FenceBackwards is a fencing token that is not above the one before it.
	FenceBackwards Kind = "fence-backwards"
	// PolledTooOften is a turn that was taken twice, or too soon.
	PolledTooOften Kind = "polled-too-often"
	// Overlap is two reads of one stream at once, without a fault that explains
	// it.
	Overlap Kind = "overlap"
	// SinkLost is an event of the log that the sink does not have in the end.
	SinkLost Kind = "sink-lost"
	// SinkDuplicated is an event that the sink has twice.
	SinkDuplicated Kind = "sink-duplicated"
	// SinkUnexpected is an event that the log does not have, or has otherwise.
	SinkUnexpected Kind = "sink-unexpected"
	// SinkReordered is an event of the sink before one that precedes it.
	SinkReordered Kind = "sink-reordered"
	// Disclosed is a key or a value of a row, or a password, where none may be.
	Disclosed Kind = "disclosed"
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		Lost, Duplicated, Unexpected, Reordered, Gap, WrongChange, MassGone, WrongDefinition, HalfBatch, CursorBackwards,
		CursorUnlinked, StaleCommit, StaleCursor, PausedCommit, StolenLease, ResurrectedLease, FreedAlive, StaleWrite, StolenHold, FenceBackwards,
		PolledTooOften, Overlap, SinkLost, SinkDuplicated, SinkUnexpected, SinkReordered, Disclosed,
	}
}
