package liveness

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// The values of the columns liveness.
const (
	BySession = "session"
	ByFlock   = "flock"
	// FoundDead is that of a lease which was taken from a dead holder.
	FoundDead = "gone"
)

// errNoLiveness reports that other nodes cannot see here whether we live.
var errNoLiveness = errors.New("liveness cannot be shown here")

// Presence is how a process shows that it lives, and sees who else does. Its
// methods are called by one goroutine at a time.
type Presence interface {
	// kind is the value of the columns liveness of such a process.
	kind() string
	// appear begins to show this process. An error that is errNoLiveness will
	// not go away.
	appear(ctx context.Context) error
	// look looks at the leases of ours in those regions, and at all nodes, unless others watch them.
	// After an error the process may not be seen any more: vanish, and appear again.
	look(ctx context.Context, regions []string) (snapshot, error)
	// free takes the lease from its holder, if the holder is still absent and
	// the lease was not renewed since the look.
	free(ctx context.Context, l lease) (bool, error)
	// vanish gives everything back.
	vanish(ctx context.Context) error
	// lasts reports whether the process stays visible for as long as it lives,
	// whatever happens to the database.
	lasts() bool
}

// snapshot is the result of a look.
type snapshot struct {
	leases []lease
	nodes  []node // that have beaten lately
	alive  aliveness
	// resting says that the look was for the leases alone, and pace how soon the next one is due,
	// if that is later than [Options].Every.
	resting bool
	pace    time.Duration
}

// sign is a sign of life in a row that a process of ours has written.
type sign struct {
	// boot and liveness are empty of a process that no other can see.
	boot, liveness string
	// touched changes with every renewal or beat.
	touched string
}

// node is a row of obs_node.
type node struct {
	sign
	// config is the hash of its configuration. SQLite leaves it out.
	config string
}

// lease is a row of INT_LOCK.
type lease struct {
	LockID
	sign
	term, node, name string
	expired          bool
}

// id names the lease for the judge, and its present term.
func (l lease) id() string { return "lease " + l.term }

func nodeID(boot string) string { return "node " + boot }

// signs are those of the leases and of the nodes, by their ids for the judge.
func (s snapshot) signs(yield func(id string, of sign) bool) {
	for _, l := range s.leases {
		if !yield(l.id(), l.sign) {
			return
		}
	}
	for _, n := range s.nodes {
		if !yield(nodeID(n.boot), n.sign) {
			return
		}
	}
}

// The rules by which a monitor frees a lease, as logs and metrics name them.
const (
	// RuleSessionGone is for a holder that is dead.
	RuleSessionGone = "session-gone"
	// RuleOwnTerm is for a lease of this very process whose term has ended: its release
	// did not come through, or an older state of the database brought it back.
	RuleOwnTerm = "own-term-ended"
)

// NewPresence returns the presence of the process of that boot id on its database.
func NewPresence(db *sqldb.DB, bootID string) Presence {
	if db.Backend() == "sqlite" {
		return &filePresence{db: db, sql: newPresenceSQL(db), bootID: bootID, prefix: filePrefix(db)}
	}
	return newSessionPresence(db, bootID)
}

// regionList is the parameter of Look: leases without a region are ours too.
func regionList(db *sqldb.DB, regions []string) any {
	return db.List(append([]string{""}, regions...))
}

// add reads one row of Look; a row of another kind is handed to other.
func (s *snapshot) add(scan func(...any) error, other func(kind, a, b string) error) error {
	var kind, key, region string
	var l lease
	err := scan(&kind, &key, &region, &l.term, &l.node, &l.name, &l.boot, &l.liveness, &l.touched, &l.expired)
	if err != nil {
		return err
	}
	switch kind {
	case "lease":
		l.LockID = LockID{sqldb.Unpadded(key), region}
		l.term = sqldb.Unpadded(l.term)
		s.leases = append(s.leases, l)
	case "node":
		s.nodes = append(s.nodes, node{l.sign, l.name})
	default:
		return other(kind, key, region)
	}
	return nil
}
