package status

import (
	"io/fs"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/pgsession"
)

// Examination has the facts about a coordination database, its INT_LOCK and its nodes,
// without a judgement. It is made without a write and without a lock, so that any
// database can be examined, also one on which only Java nodes work yet.
type Examination struct {
	// At is the database's clock at the end.
	At      time.Time
	Backend string
	Clock   Clock
	Server  Server
	// Role is zero on SQLite, which has none.
	Role Role
	// Path are the schemas of the role's search_path, or of the URL's, in their order.
	Path   []pgsession.Schema
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
	// Beyond are the offsets that lie above the end of their stream.
	Beyond []Sink
	// Paused are the observers that are paused.
	Paused []Observer
	// Poison are the observers that have poison rows.
	Poison []PoisonRows
	// Blind are the parts that could not be examined.
	Blind []Blind
}

// PoisonRows are the poison rows of an observer.
type PoisonRows struct {
	Observer string
	Rows     int64
	// Reason is the most frequent one.
	Reason string
	// Only reports that the observer has made no event.
	Only bool
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
	// Standby reports whether the server follows another one and refuses writes.
	Standby bool
	// AnyOf are the hosts of the URL where it names several and lets each
	// connection go to any of them, a standby included.
	AnyOf []string
	// Standbys is the number of standbys that stream from this server, Unseen the number
	// of replication sessions that may be standbys: the role may not see their state.
	Standbys, Unseen int
	// Pooling is the kind of a connection pooler between node and server.
	Pooling Pooling
	// Settings are those that matter here, by PostgreSQL's names; on SQLite
	// journal_mode alone.
	Settings map[string]string
	// FileMode holds the permissions of SQLite's file; 0 on PostgreSQL.
	FileMode fs.FileMode
}

// Pooling is how connections and sessions of the server belong together.
type Pooling int32

const (
	// Unpooled means that the connection is to the server itself.
	Unpooled Pooling = iota
	// PooledSessions means that there is a connection pooler, and that each connection
	// keeps its session to the end.
	PooledSessions
	// PooledTransactions means that a connection has a session for one transaction at
	// a time, and prepared statements of its own all the same.
	PooledTransactions
	// PooledUnprepared means that in addition it may get the prepared statements of other
	// connections, and not its own.
	PooledUnprepared
)

// Shared reports whether a session serves several connections in turn.
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
	// Columns are the names, in lower case.
	Columns []string
	// Unlogged reports whether the table is empty after a crash of the server.
	Unlogged bool
	Triggers []string
	// Rules are PostgreSQL's, which rewrite statements.
	Rules []string
	// RowSecurity reports whether policies decide which rows a role sees.
	RowSecurity bool
	// Refused is the error of a node that refuses to work with the table; empty: none
	// refuses.
	Refused string
	// Elsewhere are other schemas with a table of that name.
	Elsewhere []string
}

// Has reports whether there is a column of that name.
func (t LockTable) Has(column string) bool { return slices.Contains(t.Columns, column) }

// Sighting is one state of a row of INT_LOCK. Each write of the row while it is watched
// makes another sighting.
type Sighting struct {
	Key, Region, Term string
	// Created and Expires are the values in the row, read as UTC. Expires is zero where
	// the table, or the row, has no EXPIRED_AFTER.
	Created, Expires time.Time
	// First and Last are when this state was first and last seen, on the database's
	// clock.
	First, Last time.Time
	// Written reports whether the row was written while INT_LOCK was watched: at most
	// Gap, the time since the previous look, before First.
	Written bool
	Gap     time.Duration
	// Inserted reports in addition whether the lock had no row before.
	Inserted bool
	// Ours reports whether a node of observerd wrote it; the rest is only known then.
	Ours       bool
	Name, Node string
	TTL        time.Duration
}

// Acquisition is the last acquisition of a lock by a node of observerd.
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
	// Hidden reports whether other nodes could not see it die.
	Hidden bool
}

// The parts of an examination, for [Blind].
const (
	PartClock       = "the clock"
	PartServer      = "the server"
	PartSQLite      = "SQLite"
	PartConnections = "the connections"
	PartSchema      = "the schema"
	PartTable       = "the table INT_LOCK"
	PartForm        = "the form of INT_LOCK"
	PartHangers     = "the triggers of INT_LOCK"
	PartRole        = "the role"
	PartPath        = "the search_path"
	PartRows        = "the rows of INT_LOCK"
	PartLocks       = "obs_lock"
	PartNodes       = "obs_node"
	PartSchedule    = "obs_schedule"
	PartPauses      = "obs_cursor"
	PartPoison      = "obs_dead"
	PartOffsets     = "obs_sink_offset"
	PartTime        = "the time"
)

// Blind is a part that could not be examined, and the reason.
type Blind struct{ Part, Reason string }
