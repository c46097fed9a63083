package observer

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

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
	// Identity is the source's, see [Source.Identity]; empty for none.
	Identity string
	// Columns are those of the data, see [EncodeColumns]; empty for none.
	Columns string
	// RereadAt is when the rows above the low-water mark were read last; zero
	// for never. Between two such readings polls begin at Newest.
	RereadAt time.Time
	// Definition is the one by which the cluster polls, see [Spec.Definition];
	// DefinedAt is when it was set, by the store's clock.
	Definition string
	DefinedAt  time.Time
	// Form is that of the timestamps, see [Horizon.Form]; empty for unknown.
	Form string
	// KeyForm is the form of the keys, see [KeyForm.Encode]; empty for unknown.
	KeyForm string
	// FollowedFrom is the horizon when the first reading began: rows below it were there
	// before. Empty for unknown. FirstReading says that this reading is under way.
	FollowedFrom string
	FirstReading bool
	// Refusal is the last poll's, Accepted the one that a person accepted for the next
	// poll, see [Refusal.Encode]; empty for none.
	Refusal, Accepted string
}

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

// Chunk is the part of a poll that commits together.
type Chunk struct {
	// Cursor is the one that the chunk was computed from; its Version is compared.
	Cursor Cursor
	// CommitID is random for each chunk: when the answer to a commit is lost, it tells
	// whether the commit happened.
	CommitID uuid.UUID
	// These are the cursor's after this chunk.
	Low, Newest                    string
	Fingerprint, Identity, Columns string
	Definition, Form, KeyForm      string
	FollowedFrom                   string
	FirstReading                   bool
	RereadAt                       time.Time
	Refusal, Accepted              string
	// Sweep is the step that this chunk is part of; nil for a poll. If the sweep does
	// not run any more, the commit fails with [ErrConflict].
	Sweep *SweepStep
	// Generation replaces the stream's; nil leaves it. A chunk with one has no new rows.
	Generation *Generation
	// New are keys seen for the first time, their numbers following
	// Cursor.Rows in order; Changed are known keys with a new version, or
	// gone.
	New, Changed []Observed
	// Live is the number of live rows after this chunk.
	Live int64
	// Events are appended in order; the store gives them their Seq.
	Events []events.Event
	// Dead are appended to the dead rows, except those that are there already with the
	// same key, reason and content. Refused says that they belong to a refusal, see
	// [BuriedRefused].
	Dead    []Dead
	Refused bool
}

// Next is the cursor after the chunk, but for DefinedAt: the store sets that.
func (ch Chunk) Next() Cursor {
	c := ch.Cursor
	c.Version++
	c.LastSeq += int64(len(ch.Events))
	c.Low, c.Newest, c.Fingerprint = ch.Low, ch.Newest, ch.Fingerprint
	c.Identity, c.Columns, c.RereadAt = ch.Identity, ch.Columns, ch.RereadAt
	c.Definition, c.Form, c.KeyForm, c.Refusal, c.Accepted = ch.Definition, ch.Form, ch.KeyForm, ch.Refusal, ch.Accepted
	c.FollowedFrom, c.FirstReading = ch.FollowedFrom, ch.FirstReading
	c.Rows += int64(len(ch.New))
	c.Live = ch.Live
	return c
}

// movesMarks reports whether the chunk changes more of the cursor than RereadAt.
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
	// Observed returns those of the keys that are known.
	Observed(ctx context.Context, c Cursor, keys []string) (map[string]Observed, error)
	// Buried returns the state of each of these poison rows.
	Buried(ctx context.Context, c Cursor, dead []Dead) ([]Burial, error)
	// Live visits the stream's rows that are not gone and come after a key, in an order
	// of keys of its own; empty means all. An error of visit ends it and is wrapped.
	Live(ctx context.Context, c Cursor, after string, visit func(Observed) error) error
	// Generation returns the stream's last one; the zero value before the first.
	Generation(ctx context.Context, c Cursor) (Generation, error)
	// Commit renews the lease, advances the cursor and writes the whole chunk, or
	// nothing. It returns the cursor after it, see [Chunk.Next]. After an error the
	// poll must end. Nothing was written then, unless the answer was lost and another
	// poll committed before the outcome could be found out. The next poll recognises
	// rows that were written.
	Commit(ctx context.Context, ch Chunk) (Cursor, error)
}
