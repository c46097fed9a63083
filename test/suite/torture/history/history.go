// Package history says what a torture run leaves behind: what the source
// committed, what became of it, what held which lock when, and what was done to
// the nodes. The harness writes it, the checker reads it; neither knows the
// other.
//
// All instants are of one host's clock: nodes whose clocks are shifted do not
// write here. What a trigger noted has the instant at which it did: the row was
// locked already, and the transaction not ended yet. Numbers named ID grow in
// the order of the commits of one row: the triggers that draw them run while
// that row is locked.
package history

import "time"

// Run is all that is known of one run.
type Run struct {
	Meta   Meta
	Writes []Write
	Events []Event
	// Delivered are the events of the sink, in the order in which it has them.
	Delivered []Event
	Steps     []Step
	Leases    []Lease
	Grants    []Grant
	Guarded   []Guarded
	Turns     []Turn
	Parts     []Part
	Polls     []Poll
	Faults    []Fault
	Lives     []Life
	Acts      []Act
	// Disclosures are places that hold what is to be told to nobody.
	Disclosures []Disclosure
	// Counters are what the nodes counted, summed over all of their starts, by
	// metric; labels follow in braces, sorted, as Prometheus prints them.
	Counters map[string]float64
}

// Mode is how a stream recognises what is new.
type Mode string

// The modes of streams; see the package observer.
const (
	ModeNew      Mode = "new"      // one event a key, ever
	ModeChange   Mode = "change"   // one event a version that was seen
	ModeSnapshot Mode = "snapshot" // like change, and gone
)

// Stream is one observer.
type Stream struct {
	Name, Type string
	Mode       Mode
	// Table is the table of the source that it reads.
	Table string
	// LockKey is the key of the type's lock.
	LockKey string
}

// Meta says how the run was made.
type Meta struct {
	Seed     int64
	Began    time.Time
	Duration time.Duration
	Nodes    []string
	// Programs are the processes that held general locks beside the nodes.
	Programs []string
	Streams  []Stream
	Interval time.Duration
	TTL      time.Duration
	// Planned are the kinds of faults that the schedule was to inject; a run in
	// which one of them never bit is void.
	Planned []string
	// Required are the counters that must be above 0, or the run is void, by
	// name, with or without labels; nil means the checker's own list.
	Required []string
	// Mutant names the safety step that was removed; empty for the product.
	Mutant string
	// Command reproduces the run. Versions are of Go, PostgreSQL, the daemon;
	// Settings those of the servers and of the daemon that matter.
	Command  string
	Versions map[string]string
	Settings map[string]string
}

// Write is one committed version of a source row. N counts the versions of a
// row without gaps, from 1, in the order of their commits; a deletion has a
// number too. Transactions that were rolled back left nothing.
type Write struct {
	Stream string
	Key    string
	N      int64
	Gone   bool
	At     time.Time
}

// Event is one event of the log or of a sink.
type Event struct {
	Stream  string
	Seq     int64
	ID      string
	Subject string
	Version int64
	Change  string
	// N is the version of the source row that the event's data carry; 0 where
	// it has none, as for one that is gone.
	N int64
	// Shape names the columns of its data, sorted, with commas between.
	Shape string
	// Xid is the transaction that appended it, written as that of its step;
	// empty in a sink.
	Xid string
}

// Step is one change of a cursor's row, as a trigger saw it when its transaction
// committed.
type Step struct {
	ID                     int64
	Stream                 string
	OldVersion, NewVersion int64
	// OldLow and NewLow are low-water marks as obs_cursor has them: of fixed
	// width, comparable as text; empty at the beginning.
	OldLow, NewLow string
	OldSeq, NewSeq int64
	// Definition identifies how the cluster defines the stream from then on;
	// empty for not yet.
	Definition string
	// Accepted is how many rows the next poll may find gone from then on,
	// because an operator has said so.
	Accepted int64
	// AllRead says that from then on the gone rows are all that is left of a
	// reading of the source: the next poll may have nothing to read.
	AllRead  bool
	CommitID string
	Xid      string
	At       time.Time
	// Node is the node whose connection did it; empty for an operator.
	Node string
	// Holder and HolderTerm are what INT_LOCK said of the type's lock at that
	// moment, as seen in that transaction; empty when nobody had it.
	Holder, HolderTerm string
	// Expired says that the row of the lock was there but past its TTL, and not
	// renewed in that transaction.
	Expired bool
}

// Lease is one change of a row of INT_LOCK. OldTerm is empty at an insertion,
// NewTerm at a deletion; both are the same at a renewal.
type Lease struct {
	ID               int64
	Key              string
	OldTerm, NewTerm string
	Xid              string
	At               time.Time
	// Node is the node whose connection did it; empty for another.
	Node string
	// OldTouched and NewTouched are CREATED_DATE before and after, from which
	// the TTL runs; zero where the row was not there.
	OldTouched, NewTouched time.Time
}

// Grant is one change of a row of obs_lock: an acquisition by one of ours, or,
// under the term that it had already, a note about its holder.
type Grant struct {
	ID    int64
	Key   string
	Term  string
	Fence int64
	Node  string
	Xid   string
	At    time.Time
	// TTL is ttl_ms; 0 means that of the run.
	TTL time.Duration
	// Liveness is the column of that name: "gone" when the holder was found
	// dead, and the lock freed in the same transaction.
	Liveness string
}

// Guarded is one row that a program wrote under a general lock: in a transaction that the
// lease guarded, or without one, or a note that it wants the lock no more.
type Guarded struct {
	ID int64
	// Key is that of the lock, Mode the one in which it was held.
	Key, Mode string
	Term      string
	Fence     int64
	// Node is the program, and TTL that of its lease, which ran anew in the transaction.
	Node string
	TTL  time.Duration
	Kind Writing
	// Trusted says that the program trusted its lease when it wrote the row. A guard may
	// come just before the end of a lease that was not renewed in time, which it prolongs for
	// nobody who has seen that end.
	Trusted bool
	// Began is when the transaction began, At when it wrote the row, and Committed when it
	// ended, by the clock of the database.
	Began, At, Committed time.Time
}

// Writing is what a row of [Guarded] stands for.
type Writing string

// The kinds of rows.
const (
	Wrote Writing = "write"
	// Bare is a row under no guard, on a way that no fault strikes: the program trusted its
	// lease after the transaction had begun.
	Bare Writing = "bare"
	// Left is a note, under no guard, that was there before the program released the lock.
	Left Writing = "leave"
)

// Turn is one change of a row of obs_schedule: a turn that was taken.
type Turn struct {
	ID      int64
	Type    string
	Turn    time.Time // the tick that it stands for
	Node    string
	Outcome string
	At      time.Time
}

// Part is one observer's part of a turn: a row of obs_poll. A poll that was cut
// off leaves none.
type Part struct {
	ID           int64
	Type, Stream string
	Turn         time.Time
	Node         string
	// Outcome is "ok", "error", "conflict" and so on; an "unreachable" part was
	// left to other nodes, as was an "outdated" one.
	Outcome           string
	Started, Finished time.Time
}

// Poll is one streaming read of a source as its server saw it.
type Poll struct {
	Stream string
	Node   string
	Begin  time.Time
	End    time.Time
	// Whole says that the read ended by itself, not with its connection.
	Whole bool
}

// Fault is something that the harness did.
type Fault struct {
	ID int64
	// Kind is one of a fixed list, such as "kill" or "blackhole".
	Kind string
	// Node is the node that suffers; empty when all do.
	Node       string
	Detail     string
	Begin, End time.Time
	// Bit says that it really happened, as far as the harness can see: the
	// failpoint was reached, bytes were swallowed, the process died.
	Bit bool
}

// Life is one process of a node, from its start to its death. Ended is zero
// when it lived until the end of the run.
type Life struct {
	Node         string
	Began, Ended time.Time
	// How it ended, such as "kill" or "stop".
	How string
}

// Act is what an operator did to the cluster: a row of obs_audit.
type Act struct {
	Action, Subject string
	// Detail is "forget" for a reset that forgets what was observed, so that
	// every row becomes an event again.
	Detail string
	Xid    string
	At     time.Time
}

// Disclosure is a line of a log, a page, the output of a command or a row of the
// history in the coordination database that holds a key or a value of a row, or a
// password.
type Disclosure struct {
	// Where is the place, such as "a/a-001.log:17" or "page / of a".
	Where, Text string
}
