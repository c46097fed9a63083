// Package events is the vocabulary of what observerd produces: the event, its
// identity, its CloudEvents encoding, and the relay that hands the event log
// to sinks in order. It knows nothing of databases; what the relay needs from
// one is declared here as an interface and arrives from outside.
package events

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// The event types of the three observers that ship. An observer's `event` key
// replaces them.
const (
	TypeNewOrder  = "NewOrderObservedEvent"
	TypeInventory = "InventoryObservedEvent"
	TypeWesTask   = "WesTaskPolledEvent"
)

// Change says what happened to the source row.
type Change string

// The three things that can happen to a row between two polls.
const (
	ChangeNew     Change = "new"
	ChangeChanged Change = "changed"
	ChangeGone    Change = "gone"
)

// Writable returns the time if the log and RFC 3339 can write it in UTC, and the zero
// time outside of the years 1 to 9999. A source's 9999-12-31 23:59:59 west of Greenwich
// is in the year 10000.
func Writable(t time.Time) time.Time {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return time.Time{}
	}
	return t
}

// Event is one durable fact of the event log: a source row, or a version of
// one, was observed.
type Event struct {
	// ID is derived from the row (see [NewID]), never from a node or a clock:
	// every node gives the same version of the same row the same id.
	ID uuid.UUID
	// Stream is the id of the observer; order is promised within it.
	Stream string
	// Seq is the position in the stream, gapless from 1. It is 0 until the
	// event log has accepted the event.
	Seq int64
	// Type is the CloudEvents type, such as NewOrderObservedEvent.
	Type string
	// Subject is the natural key of the row; parts of a compound key are
	// joined with "/".
	Subject string
	// Version counts the versions of the row that were observed, from 1.
	Version int64
	// Change says whether the row is new, changed or gone.
	Change Change
	// Time is the row's own timestamp, or the time of the poll where the row
	// has none; zero for what no event can carry (see [Writable]).
	Time time.Time
	// Observed is when the event was committed, by the coordination database's clock. It
	// is zero until the event log has accepted the event.
	Observed time.Time
	// Snapshot says that the row was there before the stream began to follow its source.
	Snapshot bool
	// Data is the row as a JSON object; of a row that is gone it is the key.
	Data json.RawMessage
	// Checked says that a column of JSON has held Data: encoders need not look.
	Checked bool
}

// holdsJSON reports whether encoders can have the data as JSON.
func (e *Event) holdsJSON() bool { return utf8.Valid(e.Data) && (e.Checked || json.Valid(e.Data)) }

// NewID derives an event's identity: a version 8 UUID (RFC 9562, section 5.8)
// made of the SHA-256 of stream, key, version, epoch and row hash. The version
// keeps a row that goes from A to B and back to A apart; the epoch, versions that
// are counted anew after the stream was made to forget its rows; the hash, those
// counted anew after the coordination database was lost.
func NewID(stream string, epoch int64, key string, version int64, rowHash []byte) uuid.UUID {
	var room [256]byte // enough for all but very long keys, without an allocation
	text := append(append(room[:0], stream...), 0)
	text = append(append(text, key...), 0)
	text = strconv.AppendInt(text, version, 10)
	if epoch > 0 { // Ids from before there were epochs stay as they are.
		text = strconv.AppendInt(append(text, '/'), epoch, 10)
	}
	text = append(text, 0)
	sum := sha256.Sum256(append(text, rowHash...))
	id := uuid.UUID(sum[:len(uuid.UUID{})])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}
