package check_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// acquire takes a lock that is free, or past its TTL.
func (w *world) acquire(stream, node string) {
	w.pass(2 * time.Millisecond)
	l, tx, key := w.locks[stream], w.tx(), stream+"-lock"
	w.terms++
	w.fence++
	term := fmt.Sprintf("term-%d", w.terms)
	w.run.Leases = append(w.run.Leases, history.Lease{
		ID: w.id(), Key: key, OldTerm: l.term, NewTerm: term, Xid: tx, At: w.now, Node: node, OldTouched: l.touched, NewTouched: w.now,
	})
	w.run.Grants = append(w.run.Grants, history.Grant{
		ID: w.id(), Key: key, Term: term, Fence: w.fence, Node: node, Xid: tx, At: w.now, TTL: ttl, Liveness: "session",
	})
	*l = lockRow{term: term, node: node, touched: w.now}
}

func (w *world) release(stream, node string) {
	w.pass(2 * time.Millisecond)
	w.drop(stream, node, w.tx())
}

func (w *world) drop(stream, node, tx string) {
	l := w.locks[stream]
	w.run.Leases = append(w.run.Leases, history.Lease{
		ID: w.id(), Key: stream + "-lock", OldTerm: l.term, Xid: tx, At: w.now, Node: node, OldTouched: l.touched,
	})
	*l = lockRow{}
}

// free ends the lease of a node that was found dead.
func (w *world) free(stream, node string) {
	tx := w.tx()
	for _, g := range slices.Backward(w.run.Grants) {
		if g.Term == w.locks[stream].term {
			g.ID, g.Xid, g.Liveness = w.id(), tx, "gone"
			w.run.Grants = append(w.run.Grants, g)
			break
		}
	}
	w.drop(stream, node, tx)
}

// renew is a heartbeat, or part of a commit.
func (w *world) renew(stream, node, tx string) {
	l := w.locks[stream]
	w.run.Leases = append(w.run.Leases, history.Lease{
		ID: w.id(), Key: stream + "-lock", OldTerm: l.term, NewTerm: l.term, Xid: tx, At: w.now, Node: node, OldTouched: l.touched, NewTouched: w.now,
	})
	l.touched = w.now
}

// read begins a read of the source and returns its place.
func (w *world) read(stream, node string) int {
	w.pass(10 * time.Millisecond)
	w.run.Polls = append(w.run.Polls, history.Poll{Stream: stream, Node: node, Begin: w.now, Whole: true})
	w.pass(10 * time.Millisecond)
	return len(w.run.Polls) - 1
}

// poll reads all and commits it in chunks.
func (w *world) poll(stream, node string) {
	read := w.read(stream, node)
	w.renew(stream, node, w.tx())
	for chunk := range slices.Chunk(w.pending(stream), 1+w.draw(3)) {
		w.pass(5 * time.Millisecond)
		w.commit(stream, node, chunk)
	}
	w.run.Polls[read].End = w.now
}

// pending are the rows whose state the log does not tell.
func (w *world) pending(stream string) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(w.rows[stream])) {
		r, o := w.rows[stream][key], w.cursors[stream].observed[key]
		switch {
		case o == nil && r.gone:
		case o == nil:
			keys = append(keys, key)
		case r.n == o.n || stream == "new" || r.gone && stream == "change":
		case r.gone && o.gone:
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// commit appends the events of these rows.
func (w *world) commit(stream, node string, keys []string) {
	c, tx := w.cursors[stream], w.tx()
	for i, key := range keys {
		e := w.observe(stream, key)
		e.Seq, e.Xid = c.seq+int64(i)+1, tx
		w.run.Events = append(w.run.Events, e)
	}
	w.renew(stream, node, tx)
	c.commit = "commit-" + tx
	w.step(stream, node, tx, len(keys), c.low+int64(w.draw(3)), true)
}

func (w *world) observe(stream, key string) history.Event {
	r, seen := w.rows[stream][key], w.cursors[stream].observed
	o, change := seen[key], "changed"
	if o == nil {
		o = &observedRow{}
		seen[key] = o
	}
	if o.version == 0 || o.gone {
		change = "new"
	}
	e := history.Event{Stream: stream, Subject: key, N: r.n, Change: change, Shape: w.cursors[stream].shape()}
	if r.gone {
		e.N, e.Change, e.Shape = 0, "gone", "key"
	}
	o.n, o.version, o.gone = r.n, o.version+1, r.gone
	e.Version = o.version
	e.ID = fmt.Sprintf("%s/%d/%s/%d/%d", stream, w.cursors[stream].epoch, key, e.Version, e.N)
	return e
}

// step changes the cursor's row.
func (w *world) step(stream, node, tx string, events int, low int64, moves bool) {
	c, l := w.cursors[stream], w.locks[stream]
	s := history.Step{
		ID: w.id(), Stream: stream, OldVersion: c.version, OldSeq: c.seq, Definition: "with " + c.shape(), AllRead: c.allRead, CommitID: c.commit,
		Xid: tx, At: w.now, Node: node,
		Holder: l.node, HolderTerm: l.term, Expired: l.term != "" && w.now.Sub(l.touched) > ttl,
	}
	if n := len(w.run.Steps); n > 0 {
		for _, before := range slices.Backward(w.run.Steps) {
			if before.Stream == stream {
				s.OldLow = before.NewLow
				break
			}
		}
	}
	if moves {
		c.version++
	}
	c.seq, c.low = c.seq+int64(events), low
	s.NewVersion, s.NewSeq, s.NewLow = c.version, c.seq, mark(low)
	if low == 0 && s.OldLow == "" {
		s.NewLow = ""
	}
	w.run.Steps = append(w.run.Steps, s)
}

// mark is a low-water mark; empty at the beginning.
func mark(n int64) string {
	if n == 0 {
		return ""
	}
	return time.Date(2026, 1, 1, 0, 0, int(n), 0, time.UTC).Format("2006-01-02 15:04:05.000000")
}

// note notes a stream's part of a turn.
func (w *world) note(stream, node string, turn time.Time, outcome string) {
	w.pass(2 * time.Millisecond)
	w.step(stream, node, w.tx(), 0, w.cursors[stream].low, false)
	w.run.Parts = append(w.run.Parts, history.Part{
		ID: w.id(), Type: stream + "-type", Stream: stream, Turn: turn, Node: node, Outcome: outcome, Started: turn, Finished: w.now,
	})
}

// take notes that the turn was taken.
func (w *world) take(stream, node string, turn time.Time) {
	w.pass(2 * time.Millisecond)
	w.run.Turns = append(w.run.Turns, history.Turn{ID: w.id(), Type: stream + "-type", Turn: turn, Node: node, Outcome: "ok", At: w.now})
}
