// Package failpoint lets a torture run kill, stop or delay a node at a named
// step. An ordinary build holds none of it: without the build tag "failpoints"
// [Hit] is empty and inlined away, and the clock is the node's own.
//
// With the tag, two variables of the environment hold the rules:
//
//   - OBSERVERD_FAILPOINTS="commit.before=kill@3;poll.chunk=sleep:200ms@*". Each
//     rule is name=action@when. The actions are kill (SIGKILL to the process
//     itself), stop (SIGSTOP to itself; it goes on with the SIGCONT of another),
//     sleep:DURATION, sleep:FROM-TO (a random time between the two), panic and
//     exit. when is the number of the hit, from 1, at which it happens, once;
//     a star means each hit, and nothing the first. A name may have several rules.
//   - OBSERVERD_FAULT_CLOCK_OFFSET="-1h" shifts what the node takes for the time
//     of day. The monotonic clock is left alone, as it is where an operator
//     sets a clock.
//
// Before it acts, a point writes one line to stderr, so that the run knows that the
// rule applied:
//
//	failpoint name=commit.before hit=3 action=kill
package failpoint

// The variables of the environment that are read with the build tag.
const (
	// Variable holds the rules.
	Variable = "OBSERVERD_FAILPOINTS"
	// ClockVariable holds the clock's offset.
	ClockVariable = "OBSERVERD_FAULT_CLOCK_OFFSET"
)

// Names are all points, in the order in which a turn and a delivery pass them.
func Names() []string {
	return []string{
		"lease.wanted",   // the lock may be free and the turn not taken; before the attempt
		"lease.acquired", // a type's lock is held; nothing was done with it
		"poll.query",     // cursor and horizon are read; before the source is
		"poll.chunk",     // rows of a chunk are fetched, not compared
		"commit.before",  // a chunk is compared; nothing was sent
		"copy.begun",     // in a commit of several statements: after BEGIN
		"copy.fenced",    // the cursor is advanced, and its row locked
		"copy.copied",    // the rows are copied
		"copy.renewed",   // the lease is renewed; before COMMIT
		"commit.unknown", // the answer to a commit was lost; nothing was asked
		"commit.after",   // a commit was answered; the cursor is not used yet
		"turn.taken",     // the turn is noted
		"lease.release",  // before the type's lock is given back
		"relay.claimed",  // a relay has put its epoch on the sink
		"relay.read",     // it has a batch; the sink does not
		"relay.stored",   // the sink has stored a batch; the offset does not say so
		"relay.moved",    // the offset has moved
	}
}
