package engine

import "sync/atomic"

// version is one state of a row. born and dead are commit numbers, or the
// transaction that has not committed yet, or 0 for a row that lives on.
type version struct {
	values     []value
	id         uint64 // of the row, the ROWID
	born, dead atomic.Uint64
}

const (
	// uncommitted marks a stamp as the number of a transaction.
	uncommitted = 1 << 63
	// aborted is the birth of a version whose transaction was rolled back.
	aborted = ^uint64(0)
)

// view is what a statement sees: all that was committed up to a number, and
// what its own transaction did.
type view struct {
	scn uint64
	own uint64 // the stamp of the transaction, 0 for none
}

func (w view) sees(v *version) bool {
	born := v.born.Load()
	switch {
	case born&uncommitted != 0:
		if born != w.own {
			return false
		}
	case born > w.scn:
		return false
	}
	dead := v.dead.Load()
	switch {
	case dead == 0:
		return true
	case dead&uncommitted != 0:
		return dead != w.own
	}
	return dead > w.scn
}
