package observertest

import (
	"fmt"

	"github.com/observerd/observerd/internal/observer"
)

// StartSweep begins a sweep of a range.
func (db *DB) StartSweep(stream string, kind observer.SweepKind, from, before string) observer.Sweep {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.sweeps = append(db.sweeps, observer.Sweep{
		ID:     int64(len(db.sweeps)) + 1,
		Stream: stream,
		Kind:   kind,
		State:  observer.SweepRunning,
		From:   from, Before: before, Position: from,
	})
	return db.sweeps[len(db.sweeps)-1]
}

// Sweep returns a sweep as it is.
func (db *DB) Sweep(id int64) observer.Sweep {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.sweeps[id-1]
}

// CancelSweep ends a sweep.
func (db *DB) CancelSweep(id int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.sweeps[id-1].State = observer.SweepCancelled
}

// sweepOf returns the sweep that a chunk is part of, nil for none, if the
// chunk may be.
func (db *DB) sweepOf(ch observer.Chunk) (*observer.Sweep, error) {
	step := ch.Sweep
	if step == nil {
		return nil, nil
	}
	sweep := &db.sweeps[step.ID-1]
	if sweep.State != observer.SweepRunning {
		return nil, observer.ErrConflict
	}
	if step.Position < sweep.Position || step.Rows < 0 || step.Events != int64(len(ch.Events)) || sweep.Stream != ch.Before.Stream {
		return nil, fmt.Errorf("chunk breaks the contract: step %+v of sweep %+v", *step, *sweep)
	}
	return sweep, nil
}

func advance(sweep *observer.Sweep, step observer.SweepStep) {
	sweep.Position = step.Position
	sweep.Rows += step.Rows
	sweep.Events += step.Events
	if step.Done {
		sweep.State = observer.SweepDone
	}
}
