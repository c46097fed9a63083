package record

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// ErrConflict reports that a record has another version than the one that was named. Nothing
// was written.
var ErrConflict = errors.New("the record has another version")

// Records is a store of records. Writes are linearizable for each record. A Get that lags
// behind them breaks no lock, because every write names a version; it can make a holder give
// up a lock that it has. Every call ends when its context does, and calls may run at the same
// time.
//
// A write of another program that keeps the fields of a record lets its lease run for a whole
// TTL again. If it comes before the first renewal where [Options.Numbered] is set, the holder
// loses the lease: such a write cannot be told from one of an acquisition that came twice.
type Records interface {
	// Get returns the record of that region and key, without a version where there is none.
	Get(ctx context.Context, region, key string) (Record, error)
	// Put writes the record if the stored one has its version, or if there is none and it
	// has none. It returns what is stored, with its new version. After an error that is not
	// [ErrConflict] the record may have been written, or may be later. A client below that
	// sends a write again by itself must not answer ErrConflict for the write's own version.
	Put(ctx context.Context, r Record) (Record, error)
	// Delete deletes the record if it has that version. The errors are those of Put. It is
	// called where [Options.Numbered] is set.
	Delete(ctx context.Context, r Record) error
	// List returns all records of a region, in any order.
	List(ctx context.Context, region string) ([]Record, error)
}

// Record is a lock as the store has it.
type Record struct {
	Region, Key string
	// Version is another one after each write of the record, also after it was deleted and
	// made again. The store gives it, and the provider compares it alone. Empty is of a
	// record that is not there.
	Version string
	// Revision is the number of the write in a store that numbers them; see
	// [Options.Numbered].
	Revision int64
	// Mark is that of one write and no other.
	Mark string
	// Term is the acquisition that has the lock; empty while nobody has it. A record of
	// another program has a text here by which that program knows its holder.
	Term string
	// Transitions is how many acquisitions the record has seen.
	Transitions int64
	// Fence is that of the term, once it was renewed. Before, it is the Revision, or the
	// Transitions where there is none.
	Fence int64
	// TTL is for how long the record may stand unchanged before the lease is over. 0 is of
	// another program that says none: who wants the lock waits for the TTL that it asks for
	// itself, and a list shows the lease as over.
	TTL time.Duration
	// AcquiredAt and RenewedAt are by the holder's clock. They are for people.
	AcquiredAt, RenewedAt time.Time
	// Name, Node, Descriptor and Metadata are those of the [lock.Request].
	Name, Node, Descriptor, Metadata string

	since time.Time // this process has seen it unchanged since then
}

// left returns the time until the lease is over for this process, if the record stays as it is.
func (r Record) left() time.Duration { return r.TTL - time.Since(r.since) }

// taken is the record of an acquisition in place of one that was read.
func taken(g lock.Grant, before Record) Record {
	now := time.Now()
	return Record{
		Region: g.Region, Key: g.Key, Version: before.Version,
		Term: g.Term, Transitions: before.Transitions + 1, TTL: g.TTL,
		AcquiredAt: now, RenewedAt: now,
		Name: g.Name, Node: g.Node, Descriptor: g.Descriptor, Metadata: g.Metadata,
	}
}

// grant is the acquisition that the record tells of.
func (r Record) grant() lock.Grant {
	g := lock.Grant{Term: r.Term, Fence: r.fence()}
	g.Request = lock.Request{
		Region: r.Region, Key: r.Key, TTL: r.TTL, Mode: lock.Exclusive,
		Name: r.Name, Node: r.Node, Descriptor: r.Descriptor, Metadata: r.Metadata,
	}
	return g
}

func (r Record) fence() int64 { return cmp.Or(r.Fence, r.Revision, r.Transitions) }
