// Package mutant removes the safety steps of observerd one at a time, to show
// that the torture would notice. A step is a few source edits; a mutant is a
// build without one step, or without two or three that cover for each other.
// The edits reach the compiler through `go build -overlay`: the product carries
// no mutant.
//
// Each edit names the text that it replaces, which must occur exactly once. A
// test applies them all, so whoever changes a line that a mutant removes is
// told at once.
//
// The torture has no fault that takes the event log back, as a failover to a standby
// that lags does: its checker judges one history, and would need rules for what may
// vanish from it. The steps against that are tried by the tests that take a log back,
// which must pass on the source as it is and fail without the step.
//
// Nor does it call it a violation when one waits for a general lock for longer than need
// be: on a busy machine under faults all wait. Those steps are tried by tests too.
//
// Some steps cannot be seen missing as long as another stands behind them. They
// are removed in company, and the mutant says which step covers for which.
//
// Not among the mutants are four steps, because a run could not tell:
//
//   - The fsync of the file sink before its acknowledgement. A process that is
//     killed loses nothing that the kernel has; only a power failure would show.
//   - The sequence is handed out by the cursor's row and not counted by the node.
//     Under the lease and the version nobody else moves it, and without them the
//     primary key of the event log refuses what collides. The commit that copies
//     counts itself.
//   - An unknown commit that turns out not to have happened moves the cursor's
//     version. Without that its orphan may still commit, but only until its poll
//     has given the lease back, and then it does what the poll had asked for;
//     the next poll knows it. lockdb's TestCommitWhoseAnswerIsLost sees it.
//   - The epoch of a sink's offset. An earlier relay that wakes would have to
//     find the file open to two processes, and an offset that goes back; even
//     then the file knows the events that are delivered again. lockdb's
//     TestOffsetsMoveForwardUnderTheLatestEpoch sees it.
package mutant
