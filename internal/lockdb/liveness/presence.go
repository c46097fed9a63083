package liveness

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// The values of the columns liveness.
const (
	BySession = "session"
	ByFlock   = "flock"
	// FoundDead is that of a lease which was taken from a dead holder.
	FoundDead = "gone"
	// Released is that of a lease which its holder has ended, and whose lock stays for a
	// while.
	Released = "released"
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
	// look looks at the leases of ours in those regions, and at all nodes.
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
	nodes  []nodeSeen
	alive  aliveness
}

// lease is a row of INT_LOCK that a process of ours has written.
type lease struct {
	LockID
	term, node, name string
	// boot and liveness are empty for an older binary.
	boot, liveness string
	// touched changes with every renewal.
	touched string
	expired bool
}

// nodeSeen is a node that has beaten lately.
type nodeSeen struct{ name, boot, liveness, touched string }

// recentNodes is how many seconds ago a node has beaten that is looked at. The
// schedule forgets nodes sooner.
const recentNodes = "60"

// snapshotSQL returns the leases of the regions, and nodes.
// It is written without parameters, so that it needs no prepared statement on the server.
const snapshotSQL = `
SELECT 'lease', CAST(l.lock_key AS TEXT), CAST(l.region AS TEXT), CAST(l.client_id AS TEXT), o.node, o.name,
       CASE WHEN o.boot_term = o.term THEN o.boot_id ELSE '' END, CASE WHEN o.boot_term = o.term THEN o.liveness ELSE '' END,
       CAST(l.created_date AS TEXT), {ended l o.ttl_ms / 1000.0}
  FROM obs_lock o
  JOIN int_lock l ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE o.region IN ({regions})
UNION ALL
SELECT 'node', '', '', '', name, '', boot_id, liveness, CAST(seen_at AS TEXT), FALSE
  FROM obs_node
 WHERE seen_at >= {ago ` + recentNodes + `}`

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
		return &filePresence{db: db, bootID: bootID, prefix: filePrefix(db)}
	}
	return newSessionPresence(db, bootID)
}

// snapshotText is snapshotSQL for the table as it is now.
func snapshotText(db *sqldb.DB, regions []string) string {
	literals := []string{"''"}
	for _, region := range regions {
		literals = append(literals, "'"+strings.ReplaceAll(region, "'", "''")+"'")
	}
	return strings.Replace(db.SQL(snapshotSQL), "{regions}", strings.Join(literals, ", "), 1)
}

// add reads one row of snapshotSQL; a row of another kind is handed to other.
func (s *snapshot) add(scan func(...any) error, other func(kind, a, b string) error) error {
	var kind, key, region string
	var l lease
	var boot, liveness sql.NullString
	err := scan(&kind, &key, &region, &l.term, &l.node, &l.name, &boot, &liveness, &l.touched, &l.expired)
	if err != nil {
		return err
	}
	l.boot, l.liveness = boot.String, liveness.String
	switch kind {
	case "lease":
		l.LockID = LockID{sqldb.Unpadded(key), region}
		l.term = sqldb.Unpadded(l.term)
		s.leases = append(s.leases, l)
	case "node":
		s.nodes = append(s.nodes, nodeSeen{name: l.node, boot: l.boot, liveness: l.liveness, touched: l.touched})
	default:
		return other(kind, key, region)
	}
	return nil
}
