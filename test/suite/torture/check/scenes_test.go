package check_test

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// calm is a turn as it should be.
func (w *world) calm(stream string) {
	turn := w.nextTurn()
	node := w.someNode()
	w.acquire(stream, node)
	w.poll(stream, node)
	w.note(stream, node, turn, "ok")
	w.take(stream, node, turn)
	w.release(stream, node)
}

// sleeper is stopped within its poll; another takes its lock when the TTL is
// over, polls and commits, and the sleeper's read goes on until it wakes.
func (w *world) sleeper(stream string) {
	w.nextTurn()
	slow := w.someNode()
	w.acquire(stream, slow)
	read := w.read(stream, slow)
	rows := w.pending(stream)
	if len(rows) > 1 {
		w.commit(stream, slow, rows[:1])
	}
	began := w.now
	w.pass(ttl + time.Second)
	w.write(stream, 2)
	turn := w.nextTurn()
	node := w.someNode(slow)
	w.acquire(stream, node)
	w.poll(stream, node)
	w.note(stream, node, turn, "ok")
	w.fault("stop", slow, began)
	w.run.Polls[read].End = w.now.Add(300 * time.Millisecond)
	w.take(stream, node, turn)
	w.release(stream, node)
	w.pass(time.Second)
}

// killed dies behind a commit; another frees its lock and does its turn again.
func (w *world) killed(stream string) {
	turn := w.nextTurn()
	dead := w.someNode()
	w.acquire(stream, dead)
	read := w.read(stream, dead)
	w.commit(stream, dead, w.pending(stream))
	w.run.Polls[read].End, w.run.Polls[read].Whole = w.now, false
	w.restart(dead, "kill")
	node := w.someNode(dead)
	w.free(stream, node)
	w.acquire(stream, node)
	w.poll(stream, node)
	w.note(stream, node, turn, "ok")
	w.take(stream, node, turn)
	w.release(stream, node)
}

// restart ends the process of a node by a fault, and begins another.
func (w *world) restart(node, fault string) {
	began := w.now
	for i := range w.run.Lives {
		if l := &w.run.Lives[i]; l.Node == node && l.Ended.IsZero() {
			l.Ended, l.How = w.now, fault
		}
	}
	w.pass(1200 * time.Millisecond)
	w.fault(fault, node, began)
	w.run.Lives = append(w.run.Lives, history.Life{Node: node, Began: w.now})
}

// redefine has a node come back with other columns, which become the cluster's.
// All rows that are there change by that. Another node leaves the stream alone.
func (w *world) redefine(stream string) {
	node := w.someNode()
	w.restart(node, "other-columns")
	w.calm(stream)
	w.acquire(stream, node)
	c := w.cursors[stream]
	// The answer to the first attempt is lost, and it never came.
	c.commit = ""
	w.step(stream, node, w.tx(), 0, c.low, true)
	w.release(stream, node)
	turn := w.nextTurn()
	w.acquire(stream, node)
	c.narrow, c.commit = !c.narrow, "definition"
	w.renew(stream, node, w.tx())
	w.step(stream, node, w.tx(), 0, c.low, true)
	for _, o := range c.observed {
		if !o.gone {
			o.n = -1
		}
	}
	w.poll(stream, node)
	w.note(stream, node, turn, "ok")
	w.take(stream, node, turn)
	w.release(stream, node)
	turn = w.nextTurn()
	other := w.someNode(node)
	w.acquire(stream, other)
	w.note(stream, other, turn, "outdated")
	w.release(stream, other)
	w.pass(10 * time.Millisecond)
	w.acquire(stream, node)
	w.poll(stream, node)
	w.note(stream, node, turn, "ok")
	w.take(stream, node, turn)
	w.release(stream, node)
}

// vanished has most rows vanish. A poll refuses that, the next one does what an
// operator has accepted, and then they are back.
func (w *world) vanished(stream string) {
	if stream != string(history.ModeSnapshot) {
		return
	}
	bulk := func(gone bool) {
		w.version(stream, "stays", false)
		for i := range 15 {
			w.version(stream, fmt.Sprintf("bulk-%d", i), gone)
		}
	}
	bulk(false)
	w.calm(stream)
	bulk(true)
	turn := w.nextTurn()
	node := w.someNode()
	w.acquire(stream, node)
	read := w.read(stream, node)
	w.run.Polls[read].End = w.now
	w.renew(stream, node, w.tx())
	w.step(stream, node, w.tx(), 0, w.cursors[stream].low, true)
	w.note(stream, node, turn, "error")
	w.take(stream, node, turn)
	w.release(stream, node)
	w.operate("accept", stream, "all of them", true)
	w.run.Steps[len(w.run.Steps)-1].Accepted = 15
	w.calm(stream)
	bulk(false)
	w.calm(stream)
}

// unfinished has a poll that reads all rows and has not enough time to tell which
// are gone. A poll of another node tells the others, and reads nothing for that.
func (w *world) unfinished(stream string) {
	if stream != string(history.ModeSnapshot) {
		return
	}
	bulk := func(gone bool) {
		for i := range 4 {
			w.version(stream, fmt.Sprintf("left-%d", i), gone)
		}
	}
	bulk(false)
	for _, node := range nodes {
		w.acquire(stream, node)
		w.poll(stream, node)
		w.release(stream, node)
	}
	bulk(true)
	turn := w.nextTurn()
	node := w.someNode()
	w.acquire(stream, node)
	read := w.read(stream, node)
	rows := w.pending(stream)
	w.cursors[stream].allRead = true
	w.commit(stream, node, rows[:2])
	w.run.Polls[read].End = w.now
	w.note(stream, node, turn, "ok")
	w.take(stream, node, turn)
	w.release(stream, node)
	turn = w.nextTurn()
	node = w.someNode(node)
	w.acquire(stream, node)
	w.commit(stream, node, rows[2:3])
	w.note(stream, node, turn, "ok")
	// It goes on at once.
	began := w.now
	w.cursors[stream].allRead = false
	w.commit(stream, node, rows[3:])
	w.note(stream, node, turn, "ok")
	w.run.Parts[len(w.run.Parts)-1].Started = began
	w.take(stream, node, turn)
	w.release(stream, node)
}

// version commits the next version of a row.
func (w *world) version(stream, key string, gone bool) {
	r := w.rows[stream][key]
	if r == nil {
		r = &sourceRow{}
		w.rows[stream][key] = r
	}
	r.n, r.gone = r.n+1, gone
	w.run.Writes = append(w.run.Writes, history.Write{Stream: stream, Key: key, N: r.n, Gone: gone, At: w.now})
}

// shape are the columns of a stream's events.
func (c *cursorRow) shape() string {
	if c.narrow {
		return "n"
	}
	return "n,status"
}

// disturbedFree frees the lock of a node that lives but is cut off.
func (w *world) disturbedFree(stream string) {
	turn := w.nextTurn()
	cut := w.someNode()
	w.acquire(stream, cut)
	began := w.now
	w.pass(1200 * time.Millisecond)
	w.fault("blackhole", cut, began)
	node := w.someNode(cut)
	w.free(stream, node)
	w.acquire(stream, node)
	w.poll(stream, node)
	w.note(stream, node, turn, "ok")
	w.take(stream, node, turn)
	w.release(stream, node)
}

// unanswered moves the version of a commit that never came.
func (w *world) unanswered(stream string) {
	w.nextTurn()
	node := w.someNode()
	w.acquire(stream, node)
	read := w.read(stream, node)
	c := w.cursors[stream]
	c.commit = ""
	w.step(stream, node, w.tx(), 0, c.low, true)
	w.run.Polls[read].End = w.now
	w.release(stream, node)
	w.calm(stream)
}

// unreachable leaves the turn to another node.
func (w *world) unreachable(stream string) {
	turn := w.nextTurn()
	node := w.someNode()
	w.acquire(stream, node)
	w.note(stream, node, turn, "unreachable")
	w.release(stream, node)
	w.pass(10 * time.Millisecond)
	other := w.someNode(node)
	w.acquire(stream, other)
	w.poll(stream, other)
	w.note(stream, other, turn, "ok")
	w.take(stream, other, turn)
	w.release(stream, other)
}

func (w *world) pause(stream string) {
	w.operate("pause", stream, "", true)
	w.write(stream, 2)
	w.nextTurn()
	w.operate("resume", stream, "", false)
	w.calm(stream)
}

func (w *world) reset(stream string) {
	w.cursors[stream].low = 0
	w.operate("reset", stream, "", true)
	w.calm(stream)
}

func (w *world) forget(stream string) {
	c := w.cursors[stream]
	c.low = 0
	c.epoch++
	clear(c.observed)
	w.operate("reset", stream, "forget", true)
	w.calm(stream)
}

// operate is an act of an operator; some move the version.
func (w *world) operate(action, stream, detail string, moves bool) {
	w.pass(5 * time.Millisecond)
	tx := w.tx()
	low := w.cursors[stream].low
	w.step(stream, "", tx, 0, low, moves)
	w.pass(time.Millisecond)
	w.run.Acts = append(w.run.Acts, history.Act{Action: action, Subject: stream, Detail: detail, Xid: tx, At: w.now})
	w.pass(5 * time.Millisecond)
}

func (w *world) fault(kind, node string, began time.Time) {
	w.run.Faults = append(w.run.Faults, history.Fault{ID: w.id(), Kind: kind, Node: node, Begin: began, End: w.now, Bit: true})
}
