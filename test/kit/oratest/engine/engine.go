// Package engine is a small SQL engine that behaves like an Oracle database as
// far as tests of a client can see: its dialect and its refusals, its types and
// their comparisons, its snapshots and open transactions, its catalogue, its
// rights, and when an index serves. It keeps all rows in memory.
//
// It does what the tests of a client ask for, and refuses all else with a number of
// Oracle's, most of it with 03001 (unimplemented feature) and a word about it: joins by
// name, GROUP BY, DISTINCT, UNION, WITH, LIKE, EXISTS, FOR UPDATE, roles, formats with
// names of months. Where Oracle would convert one side of a comparison, or a time and
// text by the formats of the session, it refuses with 00932, since no index would serve.
// A subquery does not see the blocks around it, an index with a descending column and
// one that would be read backwards do not serve, and of V$ and ALL_ views there are the
// columns that the product reads. Only the owner defines anything, system privileges
// open nothing, and two transactions that wait for each other do so until they give up.
//
// It answers the statements of a test server as its [wire.Handler], and tests
// change its tables directly as the owner of the schema.
package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// Options say which database to play.
type Options struct {
	// Version is the release: 11, 12, 19 or 23. 0 means 19.
	Version int
	// Owner is the user that owns the tables; empty means APP. It may define
	// users and grant everything.
	Owner string
	// Now is the clock of the database's host; nil means the real one.
	Now func() time.Time
	// OSZone is the time zone of that host, in which SYSDATE and the times of
	// V$ views are; nil means UTC.
	OSZone *time.Location
	// Instances is the number of instances of a cluster; 0 means 1.
	Instances int
	// Charset is the character set that the catalogue names; empty means AL32UTF8,
	// which is that of the wire all the same.
	Charset string
}

// Engine is a database. It is safe for concurrent use.
type Engine struct {
	options Options

	// mu guards what follows.
	mu       sync.RWMutex
	objects  map[objectName]*object
	users    map[string]*user
	identity Database
	revoked  map[string]bool // packages that nobody may execute
	lastID   int

	open       transactions
	committing sync.Mutex
	scn        atomic.Uint64
}

var _ wire.Handler = (*Engine)(nil)

// New makes a database without tables.
func New(o Options) *Engine {
	if o.Version == 0 {
		o.Version = 19
	}
	if o.Owner == "" {
		o.Owner = "APP"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OSZone == nil {
		o.OSZone = time.UTC
	}
	o.Instances = max(o.Instances, 1)
	e := &Engine{
		options:  o,
		objects:  map[objectName]*object{},
		users:    map[string]*user{},
		identity: Database{DBID: 2912345678, ResetlogsChange: 925702, Name: "ORATEST", UniqueName: "ORATEST", Role: "PRIMARY"},
		revoked:  map[string]bool{},
		lastID:   20000,
	}
	e.open.open = map[uint64]*transaction{}
	e.scn.Store(1_000_000)
	e.defineSystem()
	e.users[o.Owner] = newUser()
	e.users[o.Owner].all = true
	return e
}

// now is the time of the database's host.
func (e *Engine) now() time.Time { return e.options.Now().In(e.options.OSZone) }

// Database is what V$DATABASE and USERENV say of a database.
type Database struct {
	DBID, ResetlogsChange  int64
	Name, UniqueName, Role string
}

// Database returns what V$DATABASE says.
func (e *Engine) Database() Database {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.identity
}

// SetDatabase changes what V$DATABASE says, as a restore, a copy or a change of
// roles would.
func (e *Engine) SetDatabase(d Database) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.identity = d
}

// RevokePackage takes the right to execute a package, such as
// DBMS_APPLICATION_INFO, from everybody.
func (e *Engine) RevokePackage(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revoked[name] = true
}
