package database

import (
	"cmp"
	"math"
	"strings"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
)

// rowOf are the first three arguments of a statement on the row of a grant.
func rowOf(g lock.Grant) []any { return []any{lockdb.RowKey(g.Key), g.Region, g.Term} }

// rowTerm is the CLIENT_ID of the row when the grant is the first of the lock: its own term,
// or that of a new group.
func rowTerm(g lock.Grant) string {
	if g.Mode.Alone() {
		return g.Term
	}
	return uuid.NewString()
}

func modeOf(g lock.Grant) string { return string(cmp.Or(g.Mode, lock.Exclusive)) }

// ticketOf is the ticket of the grant's place; of one without, that of the end of the line.
func ticketOf(g lock.Grant) int64 { return cmp.Or(g.Place.Ticket, math.MaxInt64) }

// holdsOf are the locks that the caller holds, each between two bars, with each mode that it
// keeps out. One with a bar in it may count as more than it is: then the caller passes one
// whom it need not pass.
func holdsOf(g lock.Grant) string {
	var text strings.Builder
	for key, held := range g.Holds {
		for _, mode := range lock.Modes() {
			if mode.Conflicts(held) {
				text.WriteString("|" + string(mode) + " " + lockdb.RowKey(key) + "|")
			}
		}
	}
	return text.String()
}

// wantedArgs are the arguments of a statement with one who wants a lock.
func wantedArgs(g lock.Grant) []any {
	return []any{g.Key, g.Region, modeOf(g), g.Place.ID, g.Place.Priority, ticketOf(g), holdsOf(g), g.TTL.Seconds()}
}
