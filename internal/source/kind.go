package source

import (
	"cmp"
	"context"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// Kind is one kind of database that observers read: all that the program has to know
// of it. [github.com/observerd/observerd/internal/source/sourcetest] is what its
// sources must pass.
type Kind struct {
	// Scheme begins the URLs of such databases, and names the kind.
	Scheme string
	// Aliases are other schemes of the same kind.
	Aliases []string
	// Example shows how a URL is written. A kind without one has a file in place of a
	// server: its URLs are the scheme and a path.
	Example string
	// Harmless are the parameters of a URL that hold no secret. The values of all
	// others are never shown.
	Harmless []string
	// Account are those of Harmless that say which account of which server is meant.
	Account []string
	// LooseNames says that the names of parameters are written in either case, and with
	// a blank or "_" for "-".
	LooseNames bool
	// HasDefaults says that a URL may leave out the server and the user.
	HasDefaults bool
	// Fetches says that FetchSize has an effect.
	Fetches bool
	// Open opens a source without connecting to it. The error is of the URL, or of the
	// files that it names.
	Open func(o Options) (Database, error)
}

// Database is what a source offers beside its rows.
type Database interface {
	observer.Source
	// Tables returns the tables and views that the account may read, in the order of
	// their names and at most so many. Those of the system are left out, and on MySQL
	// those of other databases.
	Tables(ctx context.Context, limit int) ([]Table, error)
	// Sample reads the times of the last rows of a table with a primary key, by the index of
	// that key, and at most [SampledRows]: see [Table.AddSample].
	Sample(ctx context.Context, t *Table) error
	// Describe finds out whether a query can be polled, and how well.
	Describe(ctx context.Context, q observer.Query) (Description, error)
	// SQL is the statements of a read of that range.
	SQL(ctx context.Context, q observer.Query, in observer.Range) (SQL, error)
	// Plan is how the database would run it.
	Plan(ctx context.Context, q observer.Query, in observer.Range) (Plan, error)
	Close() error
}

// Options are what a source is opened with. A kind may have no use for some of them.
type Options struct {
	// URL is that of the database, with its secrets. Required.
	URL string
	// Name is the source's and Node this node's, where a DBA sees the sessions. Empty:
	// the name of the database, and nothing.
	Name, Node string
	// Location is the zone of timestamps that have none of their own. nil means UTC.
	Location *time.Location
	// PoolSize bounds the connections; a read keeps one to its end. 0 means 4, on
	// Oracle 2.
	PoolSize int
	// FetchSize is how many rows one round trip brings, where the database sends them on
	// request; they are in memory together. 0 means 1,000.
	FetchSize int
	// QueryTimeout bounds each small statement, and how long a stream may be silent
	// while its reader waits. 0 means 30 seconds.
	QueryTimeout time.Duration
	// Gate limits the logons of the account; nil allows all of them.
	Gate Gate
}

// WithDefaults fills in what is not set. poolSize is the kind's.
func (o Options) WithDefaults(poolSize int) Options {
	o.Location = cmp.Or(o.Location, time.UTC)
	o.PoolSize = cmp.Or(max(o.PoolSize, 0), poolSize)
	o.FetchSize = cmp.Or(max(o.FetchSize, 0), 1000)
	o.QueryTimeout = cmp.Or(max(o.QueryTimeout, 0), 30*time.Second)
	o.Gate = cmp.Or[Gate](o.Gate, Open{})
	return o
}
