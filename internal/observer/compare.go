package observer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

// comparer reads statements, and commits how their rows differ from what was observed.
type comparer struct {
	*journal
	budget budget
	// tied is how many rows the last statement has had, if all of them have the
	// timestamp at which it began and no other can begin among them.
	tied int
	// arrived grows with each row that was read and each chunk that was done.
	arrived atomic.Int64
	// seen are the numbers of the live rows that the present statement has met.
	seen bitmap
	// unknown are the keys of the chunk, and of those that it carries, that were not known
	// before. Else it is kept from one chunk to the next for its room alone.
	unknown map[string]struct{}
	// room has the slices of the last chunk, once it was committed, for their room alone.
	room Chunk
	// guess says that all rows of the last chunk of the statement were new, so that those of
	// the next one may be taken for new; misled that this was wrong in this poll.
	guess, misled bool
}

// budget bounds the new and changed rows of a poll; most is 0 for no limit, as for a
// sweep, which has a [Budget], and for a single statement that reads all rows.
type budget struct{ most, changed int }

func (b *budget) take() bool {
	if b.most > 0 && b.changed >= b.most {
		return false
	}
	b.changed++
	return true
}

// comparison is a chunk in the making.
type comparison struct {
	*comparer
	chunk Chunk
	// known is what is known of each row; nil where all of them are taken for new. A key that
	// is there twice is refused by the commit then.
	known []Observed
	// deadAgain says which of chunk.Dead an earlier poll may have read already.
	deadAgain []bool
}

// compare makes a chunk of a batch. It stops at the first row that would
// exceed MaxChanged: done is how many come before that. guess takes all rows for new.
func (c *comparer) compare(ctx context.Context, part Part, b *batch, guess bool) (ch Chunk, done int, err error) {
	if ctx.Err() != nil {
		return ch, len(b.rows), context.Cause(ctx)
	}
	var known []Observed
	if !guess {
		if known, err = c.st.Observed(ctx, c.cursor, b.keys); err != nil {
			return ch, len(b.rows), failed(ctx, "read observed rows", err)
		}
	}
	if err := c.refuseShared(ctx, b.rows, known); err != nil {
		return ch, len(b.rows), err
	}
	x := &comparison{comparer: c, known: known}
	if len(c.carried.Events) == 0 {
		clear(c.unknown)
	}
	x.expect(b.rows)
	for done < len(b.rows) && x.observe(&b.rows[done], x.knownOf(done)) {
		done++
	}
	if guess && len(x.chunk.Dead) > 0 {
		return ch, done, ErrObserved // Poison is judged by what is known.
	}
	rows := b.rows[:done]
	c.stats.Rows += int64(done)
	if x.chunk.Dead, err = c.bury(ctx, part, rows, x.chunk.Dead, x.deadAgain); err != nil {
		return ch, done, err
	}
	c.noteFuture(rows)
	return x.chunk, done, nil
}

// refuseShared makes poison again of the rows that were it for their key, and that this poll
// reads without the row that has it: they would be changes of that.
func (c *comparer) refuseShared(ctx context.Context, rows []row, known []Observed) error {
	if known == nil || c.spec.Detect == DetectNew || c.spec.readsAll() {
		return nil
	}
	var again []*row
	var dead []Dead
	for i := range rows {
		r := &rows[i]
		old := &known[i]
		if old.Version == 0 || old.Gone || r.err != nil || !c.readBefore(r) {
			continue
		}
		if r.hashData(); !bytes.Equal(old.Hash, r.hash[:]) {
			again, dead = append(again, r), append(dead, Dead{Key: r.key, Reason: notUnique(c.spec), Raw: askedData(r.data, r.asked)})
		}
	}
	if len(dead) == 0 {
		return nil
	}
	buried, err := c.st.Buried(ctx, c.cursor, dead)
	if err != nil {
		return failed(ctx, "look up poison rows", err)
	}
	for i, r := range again {
		if buried[i] != NotBuried {
			r.err = errors.New(notUnique(c.spec))
		}
	}
	return nil
}

func notUnique(s Spec) string { return keyColumns(s) + " is not unique" }

// knownOf is what is known of the i-th row; the zero value for nothing.
func (c *comparison) knownOf(i int) (o Observed) {
	if c.known != nil {
		o = c.known[i]
	}
	return o
}

// expect makes room for all new rows at once.
func (c *comparison) expect(rows []row) {
	n := len(rows)
	for i := range c.known {
		if c.known[i].Version > 0 {
			n--
		}
	}
	c.chunk.New, c.chunk.Events = slices.Grow(c.room.New[:0], n), slices.Grow(c.room.Events[:0], n)
	c.room = Chunk{}
	if c.unknown == nil {
		c.unknown = make(map[string]struct{}, n)
	}
}

// observe compares one row with what is known of it; false means that it has changed and
// that the poll must not take more changed rows.
func (c *comparison) observe(r *row, old Observed) bool {
	known := old.Version > 0
	switch {
	case r.err != nil:
		c.poison(r, r.err.Error())
		if known && !old.Gone {
			c.seen.add(old.Number)
		}
		return true
	case r.key == "":
		c.poison(r, keyColumns(c.spec)+" is empty")
		return true
	case !known && (c.known == nil || c.isFirst(r.key)):
		return c.add(r)
	case c.spec.Detect == DetectNew:
		if !known {
			c.shared++
		}
		return true
	case !known || c.seen.has(old.Number):
		// The first one stands. Were the second a change, the two would make
		// versions of each other in every poll.
		c.poison(r, notUnique(c.spec))
		return true
	}
	r.hashData()
	if !old.Gone && bytes.Equal(old.Hash, r.hash[:]) {
		c.seen.add(old.Number)
		return true
	}
	return c.change(r, old)
}

func (c *comparison) poison(r *row, reason string) {
	c.journal.poison.met++
	c.journal.poison.last = reason
	c.deadAgain = append(c.deadAgain, c.readBefore(r))
	c.chunk.Dead = append(c.chunk.Dead, Dead{Key: r.key, Reason: reason, Raw: askedData(r.data, r.asked)})
}

// isFirst reports whether no row of the chunk before this one has the key, which is
// not known, and notes it.
func (c *comparison) isFirst(key string) bool {
	before := len(c.unknown)
	c.unknown[key] = struct{}{}
	return len(c.unknown) > before
}

func (c *comparison) add(r *row) bool {
	if !c.budget.take() {
		return false
	}
	if r.id == uuid.Nil {
		r.identify(c.spec.Stream, c.cursor.Epoch)
	}
	o := Observed{Key: r.key, Hash: r.hash[:], Version: 1, Number: c.cursor.Rows + int64(len(c.carried.New)+len(c.chunk.New)) + 1}
	c.chunk.New = append(c.chunk.New, o)
	if c.spec.Detect != DetectNew {
		c.seen.add(o.Number)
	}
	c.event(r, r.id, o, events.ChangeNew)
	c.chunk.Events[len(c.chunk.Events)-1].Snapshot = c.isHistory(r)
	return true
}

// isHistory reports whether a row that is new to the stream was there before the stream
// began to follow its source: it lies below the first horizon, where no more rows appear
// but by back-dating. A row of the last moments before does not count.
func (j *journal) isHistory(r *row) bool {
	sweep := j.sweep.kind()
	switch {
	case sweep == SweepBackfill:
		return true
	case r.cursor == "":
		return j.next.FirstReading && sweep == ""
	case j.next.Marks.FollowedFrom == "" || j.spec.readsAll() && !j.next.FirstReading:
		return false
	}
	return j.src.Compare(r.cursor, j.src.Restate(j.next.Marks.FollowedFrom, j.next.Marks.Form)) < 0
}

// change notes the next version of a row. A row that was gone and is back is new again,
// under the next version of its key.
func (c *comparison) change(r *row, old Observed) bool {
	if !c.budget.take() {
		return false
	}
	what := events.ChangeChanged
	if old.Gone {
		what = events.ChangeNew
	}
	o := Observed{Key: r.key, Hash: r.hash[:], Version: old.Version + 1, Number: old.Number}
	c.chunk.Changed = append(c.chunk.Changed, o)
	c.seen.add(o.Number)
	c.event(r, c.newID(o), o, what)
	return true
}

func (c *comparison) event(r *row, id uuid.UUID, o Observed, what events.Change) {
	at := r.time
	if at.IsZero() {
		at = c.at
	}
	c.chunk.Events = append(c.chunk.Events, c.newEvent(id, o, what, at, r.data))
}

func keyColumns(s Spec) string { return fmt.Sprintf("key (%s)", strings.Join(s.Query.Key, ", ")) }
