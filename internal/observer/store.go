package observer

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

// ErrObserved reports that a key of [Chunk.New] was observed before. Nothing was written.
var ErrObserved = errors.New("a row that was to be new was observed before; nothing was written")

// ErrConflict reports that a pause, a reset or another poll moved the cursor before
// a commit, or that the stream is paused. Nothing was written.
var ErrConflict = errors.New("the cursor was moved by another; nothing was written")

// Cursor is what the coordination database remembers of a stream.
type Cursor struct {
	// ID is the stream's number in the tables, Stream its name.
	ID     int64
	Stream string
	// Version grows by one with every commit. A commit names the version that it was
	// computed from, so two polls cannot both advance it.
	Version int64
	// Epoch counts how often the stream forgot its rows. From 1 on it is part of the
	// ids of events.
	Epoch int64
	// LastSeq is the sequence of the stream's last event; 0 before the first.
	LastSeq int64
	// Low is the low-water mark: every row below it was observed and no more
	// will appear there. It goes back with the source's clock and its open
	// transactions, and with another source to where the stream began.
	// Newest is the highest timestamp seen. Both are the source's own text; empty
	// before the first commit.
	Low, Newest string
	// Rows is the highest row number of a key, Live the number of rows not gone.
	Rows, Live int64
	// Fingerprint identifies the query of the cursor; empty before the first commit.
	Fingerprint string
	// Definition is the one by which the cluster polls, see [Spec.Definition];
	// DefinedAt is when it was set, by the store's clock.
	Definition string
	DefinedAt  time.Time
	// FirstReading says that the first reading is under way, see [Marks.FollowedFrom].
	FirstReading bool
	// Refusal is the last poll's, Accepted the one that a person accepted for the next
	// poll, see [Refusal.Encode]; empty for none.
	Refusal, Accepted string
	// Marks are for the polls alone.
	Marks Marks
}

// RefusalKind is the kind of rows or columns that a poll refuses.
type RefusalKind string

// The kinds of refusals.
const (
	// RefusalGone are more rows missing from a snapshot than may go at once.
	RefusalGone RefusalKind = "gone"
	// RefusalPoison are more rows that cannot be read than single bad rows are.
	RefusalPoison RefusalKind = "poison"
	// RefusalColumns are columns that the source has taken away or retyped.
	RefusalColumns RefusalKind = "columns"
	// RefusalAdded are columns that the source has added, which make an event of each row.
	RefusalAdded RefusalKind = "added"
)

// Refusal is what a poll or a sweep did not believe, for a person to judge. After that
// person accepts it, the next one goes that far, once. The zero value is none.
type Refusal struct {
	Kind RefusalKind `json:"kind"`
	// Sweep is the kind of the sweep that refused; empty for a poll.
	Sweep SweepKind `json:"sweep,omitempty"`
	// Rows is how many rows are gone, or poison.
	Rows int64 `json:"rows,omitempty"`
	// Columns are those that were found, as [EncodeColumns] writes them.
	Columns string `json:"columns,omitempty"`
	// Text says it to a person. It holds no value of a row.
	Text string `json:"text"`
}

// Encode writes a refusal as the cursor remembers it; empty for none.
func (r Refusal) Encode() string {
	if r == (Refusal{}) {
		return ""
	}
	return encode(r)
}

// DecodeRefusal reads what [Refusal.Encode] wrote. The error is for a text that
// a later version wrote.
func DecodeRefusal(text string) (Refusal, error) { return decode[Refusal](text, "refusal") }

// Observed is the memory of one key.
type Observed struct {
	Key string
	// Hash is of the row's data, Version counts the versions, from 1.
	Hash    []byte
	Version int64
	// Number is the row's dense number in the stream, from 1.
	Number int64
	Gone   bool
}

// Dead is a poison row: kept for a person to look at, never lost silently.
type Dead struct {
	// Key may be empty where it is the key that cannot be read.
	Key string
	// Reason names the column and the fault, never a value.
	Reason string
	// Raw is what could be read of the row, as JSON; it may be empty.
	Raw []byte
}

// Burial is the state of a poison row in the store.
type Burial int

const (
	// NotBuried was never committed.
	NotBuried Burial = iota
	// BuriedRefused was committed with a refusal: it is shown, and the next poll
	// judges it again.
	BuriedRefused
	// BuriedLong is known, but so old that it is committed again before retention
	// removes it.
	BuriedLong
	// Buried is known.
	Buried
)

// Generation is one reading of all rows of a source. If an index serves the key it takes
// as many polls as it needs, on any nodes; else it is one statement.
type Generation struct {
	// Reading identifies the query, the source and the order of the keys. A poll goes on
	// only with a generation of its own.
	Reading string
	// Key is the last key that was compared, where the reading goes on; empty for
	// the beginning. Once the reading is Complete, the live rows that it lacked are
	// looked for, and Key is the last live row that was checked.
	Key      string
	Complete bool
	// Seen are the numbers of the rows that were read, as [bitmap] writes them.
	Seen []byte
	// Rows were read, some of them twice where a poll went on.
	Rows int64
	// StartedAt and FinishedAt are by the clocks of nodes; FinishedAt is zero until the
	// end.
	StartedAt, FinishedAt time.Time
	// Took is how long the last finished generation lasted; 0 for none.
	Took time.Duration
}

// Chunk is the part of a poll that commits together.
type Chunk struct {
	// Before is the cursor that the chunk was computed from; its Version is compared.
	// After is the one that the chunk leaves, see [Chunk.Advance].
	Before, After Cursor
	// CommitID is random for each chunk: when the answer to a commit is lost, it tells
	// whether the commit happened.
	CommitID uuid.UUID
	// Sweep is the step that this chunk is part of; nil for a poll. If the sweep does
	// not run any more, the commit fails with [ErrConflict].
	Sweep *SweepStep
	// Generation replaces the stream's; nil leaves it. A step of a sweep has none.
	Generation *Generation
	// New are keys seen for the first time, their numbers following
	// Before.Rows in order; Changed are known keys with a new version, or
	// gone.
	New, Changed []Observed
	// Events are appended in order; the store gives them their Seq.
	Events []events.Event
	// Dead are appended to the dead rows, except those that are there already with the
	// same key, reason and content. Refused says that they belong to a refusal, see
	// [BuriedRefused].
	Dead    []Dead
	Refused bool
}

// follow puts the changes of another chunk before those of this one.
func (ch *Chunk) follow(before Chunk) {
	if len(before.Events) == 0 {
		return
	}
	ch.New = append(before.New, ch.New...)
	ch.Changed = append(before.Changed, ch.Changed...)
	ch.Events = append(before.Events, ch.Events...)
}

// Advance sets After to the marks, and counts on from Before by what the chunk holds. The
// store sets DefinedAt.
func (ch *Chunk) Advance(marks Cursor) {
	marks.Version = ch.Before.Version + 1
	marks.LastSeq = ch.Before.LastSeq + int64(len(ch.Events))
	marks.Rows = ch.Before.Rows + int64(len(ch.New))
	marks.Live = ch.Before.Live
	for i := range ch.Events {
		switch ch.Events[i].Change {
		case events.ChangeNew:
			marks.Live++
		case events.ChangeGone:
			marks.Live--
		}
	}
	ch.After = marks
}

// Store is the coordination database, bound to the lease under which a poll
// runs. Errors that mean the lease had ended are lock.ErrFenced; a commit may
// also be refused with [ErrConflict].
type Store interface {
	// Cursor returns the stream's cursor and creates it at the first call.
	Cursor(ctx context.Context, stream string) (Cursor, error)
	// Observed returns what is known of each of the keys, in their order: Version is 0 for
	// one that is not known, as an empty one is. The result is not nil, and valid until the next
	// call.
	Observed(ctx context.Context, c Cursor, keys []string) ([]Observed, error)
	// Buried returns the state of each of these poison rows.
	Buried(ctx context.Context, c Cursor, dead []Dead) ([]Burial, error)
	// Live visits the stream's rows that are not gone and come after a key, in an order
	// of keys of its own; empty means all. An error of visit ends it and is wrapped.
	Live(ctx context.Context, c Cursor, after string, visit func(Observed) error) error
	// Generation returns the stream's last one; the zero value before the first.
	Generation(ctx context.Context, c Cursor) (Generation, error)
	// Commit renews the lease, advances the cursor and writes the whole chunk, or
	// nothing. After [ErrObserved] the poll may commit another chunk in the place of this one.
	// It returns the cursor after it, with DefinedAt or without. After any other error the
	// poll must end. Nothing was written then, unless the answer was lost and another
	// poll committed before the outcome could be found out. The next poll recognises
	// rows that were written. What the chunk has is the caller's again after a commit.
	Commit(ctx context.Context, ch Chunk) (Cursor, error)
}
