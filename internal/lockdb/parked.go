package lockdb

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// ParkedEvent is an event that a sink has refused for good, or that waits for such a one of
// its key.
type ParkedEvent struct {
	Number       int64
	Sink, Stream string
	Seq          int64
	// Event is its id, Key that of its row.
	Event, Key string
	// Reason says why, without a value of the row.
	Reason   string
	ParkedAt time.Time
	// Retry says that it waits for the relay of the sink, which is to deliver it.
	Retry bool
	// Data is that of the event, where it was asked for.
	Data []byte
}

// ParkedFilter says which parked events are meant. An empty field means any.
type ParkedFilter struct {
	Numbers        []int64
	Sinks, Streams []string
	Key            string
	// Since is how long ago the event was parked, by the database's clock.
	Since time.Duration
	// Data asks for that of the events, which may be much.
	Data bool
	// Limit is the most that are returned; 0 means all.
	Limit int
}

// Parked returns parked events, sink by sink, stream by stream, in their order.
func (t *Operations) Parked(ctx context.Context, f ParkedFilter) ([]ParkedEvent, error) {
	return sqldb.All(ctx, t.db, "read the parked events", t.sql.SQL().Parked.Parked,
		func(scan sqldb.Scan, p *ParkedEvent) error {
			return scan(&p.Number, &p.Sink, &p.Stream, &p.Seq, &p.Event, &p.Key, &p.Reason, sqldb.ScanTime(&p.ParkedAt), &p.Retry, &p.Data)
		}, len(f.Numbers) == 0, t.db.List(numbers(f.Numbers)), len(f.Sinks) == 0, t.db.List(f.Sinks), len(f.Streams) == 0, t.db.List(f.Streams),
		f.Key, f.Since.Seconds(), f.Data, cmp.Or(f.Limit, math.MaxInt32))
}

// RetryParked has the relay of the act's subject, a sink, deliver parked events, and all that
// is parked of their keys. It returns how many these are.
func (t *Operations) RetryParked(ctx context.Context, ids []int64, act Act) (int64, error) {
	return t.change(ctx, act, t.sql.SQL().Parked.Retry, act.Subject, t.db.List(numbers(ids)))
}

// DropParked removes parked events of the act's subject, a sink, and returns how many there
// were.
func (t *Operations) DropParked(ctx context.Context, ids []int64, act Act) (int64, error) {
	return t.change(ctx, act, t.sql.SQL().Parked.Drop, act.Subject, t.db.List(numbers(ids)))
}
