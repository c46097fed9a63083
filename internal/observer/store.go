package observer

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

// ErrConflict reports that a commit found another version of the cursor than
// it was computed from: a pause, a reset or another poller came first; or that
// the stream is paused. Nothing was written, and the poll itself has no fault.
var ErrConflict = errors.New("the cursor was moved by another; nothing was written")

// Cursor is what the coordination database remembers of a stream.
type Cursor struct {
	// ID is the stream's number in the tables, Stream its name.
	ID     int64
	Stream string
	// Version grows by one with every commit: a commit names the version that
	// it has read, so two pollers cannot both advance it.
	Version int64
	// Epoch counts how often the stream was made to forget its rows. It is part of
	// the ids of events, from 1 on.
	Epoch int64
	// LastSeq is the sequence of the stream's last event; 0 before the first.
	LastSeq int64
	// Low is the low-water mark: every row below it was observed and no more
	// will appear there. It goes back where the source's clock or its open
	// transactions have, and to where the stream began with another source.
	// Newest is the highest timestamp seen. Both are the source's own text; empty
	// before the first commit.
	Low, Newest string
	// Rows is the highest row number given to a key, Live how many of the
	// numbered rows are not gone.
	Rows, Live int64
	// Fingerprint identifies the query that the cursor belongs to; empty
	// before the first commit.
	Fingerprint string
	// Identity is that of the source when the cursor was written, see
	// [Source.Identity]; empty for none.
	Identity string
	// Columns are the columns of the data and their types, as
	// [EncodeColumns] writes them; empty for none.
	Columns string
	// RereadAt is when the rows above the low-water mark were read last; zero
	// for never. Between two such readings polls begin at Newest.
	RereadAt time.Time
	// Definition is that of the observer by which the cluster polls, see
	// [Spec.Definition], and DefinedAt when it was set, by the store's clock.
	Definition string
	DefinedAt  time.Time
	// Form is that of the source's timestamps, see [Horizon.Form]; empty where it is
	// not known.
	Form string
	// KeyForm is how the keys are written, as [KeyForm.Encode] writes it; empty where
	// that is not known, as for a stream that began before it was remembered.
	KeyForm string
	// Refusal is what the last poll refused, and Accepted what a person lets the
	// next one do of it, both as [Refusal.Encode] writes them; empty for none.
	Refusal, Accepted string
}

// Observed is what is remembered of one key.
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

// Burial says what is known of a poison row.
type Burial int

const (
	// NotBuried was never committed.
	NotBuried Burial = iota
	// BuriedRefused was committed as part of a refusal: it is shown, and judged
	// anew by the next poll.
	BuriedRefused
	// BuriedLong is known, and has to be committed again lest it be forgotten
	// because of its age.
	BuriedLong
	// Buried is known.
	Buried
)

// Chunk is the part of a poll that commits together.
type Chunk struct {
	// Cursor is the cursor that the chunk was computed from; its Version is
	// compared.
	Cursor Cursor
	// CommitID is random for each chunk. When the answer to a commit is lost,
	// it reports whether the commit happened.
	CommitID uuid.UUID
	// Low and Newest are the marks after this chunk.
	Low, Newest string
	// Fingerprint is the query's; Identity, Columns and RereadAt are those of
	// the cursor after this chunk, and so are Definition, Form, KeyForm, Refusal and Accepted.
	Fingerprint, Identity, Columns string
	Definition, Form, KeyForm      string
	RereadAt                       time.Time
	Refusal, Accepted              string
	// Sweep is the step of a sweep that this chunk is part of; nil for a poll.
	// A sweep that is not running any more refuses the chunk with
	// [ErrConflict].
	Sweep *SweepStep
	// Generation takes the place of what is remembered; nil leaves it. A chunk that
	// has one has no new rows.
	Generation *Generation
	// New are keys seen for the first time, their numbers following
	// Cursor.Rows in order; Changed are known keys with a new version, or
	// gone.
	New, Changed []Observed
	// Live is the number of live rows after this chunk.
	Live int64
	// Events are appended in order; the store gives them their Seq.
	Events []events.Event
	// Dead are appended to the dead rows; one that is there already with the
	// same key, reason and content is not repeated. Refused says that they are
	// part of a refusal, see [BuriedRefused].
	Dead    []Dead
	Refused bool
}

// Next is the cursor after the chunk. When a definition was set is for the store
// to say: DefinedAt is that of the cursor before.
func (ch Chunk) Next() Cursor {
	c := ch.Cursor
	c.Version++
	c.LastSeq += int64(len(ch.Events))
	c.Low, c.Newest, c.Fingerprint = ch.Low, ch.Newest, ch.Fingerprint
	c.Identity, c.Columns, c.RereadAt = ch.Identity, ch.Columns, ch.RereadAt
	c.Definition, c.Form, c.KeyForm, c.Refusal, c.Accepted = ch.Definition, ch.Form, ch.KeyForm, ch.Refusal, ch.Accepted
	c.Rows += int64(len(ch.New))
	c.Live = ch.Live
	return c
}

// movesMarks reports whether the cursor after the chunk says more of the stream than
// that it was read.
func (ch Chunk) movesMarks() bool {
	next := ch.Next()
	next.Version, next.RereadAt = ch.Cursor.Version, ch.Cursor.RereadAt
	return next != ch.Cursor
}

// Store is the coordination database, bound to the lease under which a poll
// runs. Errors that mean the lease had ended are lock.ErrFenced; a commit may
// also be refused with [ErrConflict].
type Store interface {
	// Cursor returns the stream's cursor and creates it at the first call.
	Cursor(ctx context.Context, stream string) (Cursor, error)
	// Observed returns what is remembered of these keys; unknown keys are
	// missing from the result.
	Observed(ctx context.Context, c Cursor, keys []string) (map[string]Observed, error)
	// Buried says of each of these poison rows what is known of it.
	Buried(ctx context.Context, c Cursor, dead []Dead) ([]Burial, error)
	// Live visits the rows of the stream that are not gone, in an order of its own
	// by their keys, and only those that come behind a key; empty means all. An error
	// of visit ends it and is wrapped in the result.
	Live(ctx context.Context, c Cursor, after string, visit func(Observed) error) error
	// Generation returns what is remembered of the stream's reading of all rows;
	// the zero value before the first.
	Generation(ctx context.Context, c Cursor) (Generation, error)
	// Commit renews the lease, advances the cursor and writes all that the
	// chunk holds, or nothing. It returns the cursor after it, see [Chunk.Next].
	// After an error the poll must end: nothing was written, unless another
	// poller has committed before it could be found out what became of a commit
	// whose answer was lost. The next poll recognises what there is.
	Commit(ctx context.Context, ch Chunk) (Cursor, error)
}
