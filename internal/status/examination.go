package status

import (
	"io/fs"
	"time"

	"github.com/observerd/observerd/internal/pgpath"
)

// Examination is what a look at a coordination database, at INT_LOCK in it and
// at the nodes on it has shown: facts, without a judgement. It is made without
// a write and without a lock, so that it can be made of any database, also of
// one on which only Java nodes work yet.
type Examination struct {
	// At is the database's clock at the end.
	At      time.Time
	Backend string
	Clock   Clock
	Server  Server
	// Role is zero on SQLite, which has none.
	Role Role
	// Path are the schemas of the role's search_path, or of the URL's, in their order.
	Path   []pgpath.Schema
	Schema SchemaVersion
	Table  LockTable
	// Watched is how long INT_LOCK was watched, Every the time between two
	// looks at it.
	Watched, Every time.Duration
	Sightings      []Sighting
	// Acquired are the last acquisitions by nodes of ours: the rows of obs_lock.
	Acquired []Acquisition
	Members  []Member
	Turns    []Type
	// Fed are the sinks that have an offset.
	Fed []string
	// Beyond are the offsets that lie above the end of their stream.
	Beyond []Sink
	// Waiting are the first events of each stream that a sink has not stored.
	Waiting []Waiting
	// Blind are the parts that could not be looked at.
	Blind []Blind
}

// Waiting is an event that a sink has not stored, the first of its stream.
type Waiting struct {
	Sink, Stream string
	Seq          int64
	// Since is when the event was logged or, where that is later, the sink's offset moved.
	Since time.Time
}

// Clock compares the clock of this host with the database's.
type Clock struct {
	// Ahead is how far this host's clock is ahead; negative: behind.
	Ahead time.Duration
	// Within is the greatest error of Ahead: half the time that the fastest of
	// the looks took.
	Within time.Duration
}

// Server is the database server, or the SQLite library with its file.
type Server struct {
	Version string
	// Number is PostgreSQL's server_version_num; 0 on SQLite.
	Number int
	// Standby says that the server follows another one and cannot be written.
	Standby bool
	// AnyOf are the hosts of the URL where it names several and lets each
	// connection go to any of them, a standby included.
	AnyOf []string
	// Standbys are how many standbys stream from this server, Unseen how many sessions
	// for replication may be such: the role may not look at their state.
	Standbys, Unseen int
	// Pooling says whether a connection pooler is between.
	Pooling Pooling
	// Settings are those that matter here, by PostgreSQL's names; on SQLite
	// journal_mode alone.
	Settings map[string]string
	// FileMode holds the permissions of SQLite's file; 0 on PostgreSQL.
	FileMode fs.FileMode
}

// Pooling is how a connection comes by its session of the server.
type Pooling int32

const (
	// Unpooled means that the connection is to the server itself.
	Unpooled Pooling = iota
	// PooledSessions means that a connection pooler is between, and that each
	// connection keeps its session to the end.
	PooledSessions
	// PooledTransactions means that a connection has a session for one transaction at
	// a time, and prepared statements of its own all the same.
	PooledTransactions
	// PooledUnprepared means that in addition it may meet the prepared statements of
	// others, and miss its own.
	PooledUnprepared
)

// Shared reports whether a session serves several connections by turns.
func (p Pooling) Shared() bool { return p == PooledTransactions || p == PooledUnprepared }

// Role is the database role that nodes with this configuration have.
type Role struct {
	Name string
	// Excess are the rights that no node needs, such as SUPERUSER.
	Excess []string
	// Missing are the rights that it lacks, such as "UPDATE on obs_lock".
	Missing []string
	// ToMigrate are those that it lacks for the migration that is pending.
	ToMigrate []string
}

// SchemaVersion is the version of our tables: in the database, 0 for none, and
// in this binary.
type SchemaVersion struct{ Current, Target int64 }

// LockTable is INT_LOCK as the catalogue has it.
type LockTable struct {
	// Schema is empty when there is no such table in the search path.
	Schema string
	// Kind is "table", or what it is in the place of one.
	Kind    string
	Columns []Column
	// Unique are the columns of each primary key or unique index.
	Unique [][]string
	// Unlogged says that the table is empty after a crash of the server.
	Unlogged bool
	Triggers []string
	// Rules are PostgreSQL's, which rewrite statements.
	Rules []string
	// RowSecurity says that policies decide which rows a role sees.
	RowSecurity bool
	// Refused is what a node says that refuses to work with the table; empty: it
	// does not.
	Refused string
	// Elsewhere are other schemas with a table of that name.
	Elsewhere []string
}

// Column is a column of INT_LOCK.
type Column struct {
	// Name and Type are in lower case, Type as the catalogue words it.
	Name, Type string
	// Length is the most characters of a text, 0 for no limit.
	Length   int
	Nullable bool
	// Default is the expression of a default; empty: none.
	Default string
}

// Has reports whether there is a column of that name, and returns it.
func (t LockTable) Has(name string) (Column, bool) {
	for _, c := range t.Columns {
		if c.Name == name {
			return c, true
		}
	}
	return Column{}, false
}

// Sighting is a row of INT_LOCK with one content. A row that is written anew
// while it is watched is one sighting more.
type Sighting struct {
	Key, Region, Term string
	// Created and Expires are as they stand in the row, read as UTC. Expires is
	// zero where the table, or the row, has no EXPIRED_AFTER.
	Created, Expires time.Time
	// First and Last are when it was seen so, on the database's clock.
	First, Last time.Time
	// Written says that it was written while INT_LOCK was watched: at most Gap,
	// the time since the look before, earlier than First.
	Written bool
	Gap     time.Duration
	// Inserted says in addition that there was no row for the lock before.
	Inserted bool
	// Ours says that a node of ours wrote it; the rest is only known then.
	Ours       bool
	Name, Node string
	TTL        time.Duration
}

// Acquisition is the last acquisition of a lock by a node of ours.
type Acquisition struct {
	Key, Region, Name, Node string
	TTL                     time.Duration
	At                      time.Time
}

// Member is a node with the sinks of its configuration. One without types is
// switched off.
type Member struct {
	Node
	Sinks []string
	// Hidden says that others could not see it die.
	Hidden bool
}

// The parts of an examination, as [Blind] names them.
const (
	PartClock       = "the clock"
	PartServer      = "the server"
	PartSQLite      = "SQLite"
	PartConnections = "the connections"
	PartSchema      = "the schema"
	PartTable       = "the table INT_LOCK"
	PartForm        = "the form of INT_LOCK"
	PartColumns     = "the columns of INT_LOCK"
	PartHangers     = "the indexes and triggers of INT_LOCK"
	PartRole        = "the role"
	PartPath        = "the search_path"
	PartRows        = "the rows of INT_LOCK"
	PartLocks       = "obs_lock"
	PartNodes       = "obs_node"
	PartSchedule    = "obs_schedule"
	PartOffsets     = "obs_sink_offset"
	PartLog         = "obs_event"
	PartTime        = "the time"
)

// Blind is a part that could not be looked at, and the reason.
type Blind struct{ Part, Reason string }
