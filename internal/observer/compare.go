package observer

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/events"
)

// comparison is a chunk in the making.
type comparison struct {
	*poll
	chunk Chunk
	known map[string]Observed
	// deadAgain says which of chunk.Dead an earlier poll may have read already.
	deadAgain []bool
}

// compare makes a chunk of a batch. It stops at the first row that would
// exceed MaxChanged.
func (p *poll) compare(ctx context.Context, b *batch) (Chunk, error) {
	if ctx.Err() != nil {
		return Chunk{}, context.Cause(ctx)
	}
	known, err := p.st.Observed(ctx, p.cursor, b.keys)
	if err != nil {
		return Chunk{}, failed(ctx, "read observed rows", err)
	}
	c := &comparison{poll: p, chunk: p.newChunk(), known: known}
	clear(p.fresh)
	c.expect(len(b.rows) - len(known))
	done := 0
	for done < len(b.rows) && c.observe(&b.rows[done]) {
		done++
	}
	p.full = done < len(b.rows)
	p.stats.Rows += int64(done)
	if err := c.bury(ctx, b.rows[:done]); err != nil {
		return Chunk{}, err
	}
	c.settle(b.rows[:done])
	return c.chunk, nil
}

// expect allocates for that many new rows at once.
func (c *comparison) expect(n int) {
	if n <= 0 {
		return
	}
	if limit := c.spec.MaxChanged; limit > 0 {
		n = min(n, limit)
	}
	c.chunk.New = make([]Observed, 0, n)
	c.chunk.Events = make([]events.Event, 0, n)
	if c.fresh == nil {
		c.fresh = make(map[string]struct{}, n)
	}
}

// observe compares one row; false means that it has changed and that the poll
// must not take more changed rows.
func (c *comparison) observe(r *row) bool {
	old, known := c.known[r.key]
	switch {
	case r.err != nil:
		c.poison(r, r.err.Error())
		if known && !old.Gone {
			c.seen.add(old.Number)
		}
		return true
	case r.key == "":
		c.poison(r, c.keyColumns()+" is empty")
		return true
	case !known && c.isFirst(r.key):
		return c.add(r)
	case c.spec.Detect == DetectNew:
		return true
	case !known || c.seen.has(old.Number):
		// The first one stands. Were the second a change, the two would make
		// versions of each other in every poll.
		c.poison(r, c.keyColumns()+" is not unique")
		return true
	}
	r.hashData()
	if !old.Gone && bytes.Equal(old.Hash, r.hash[:]) {
		c.seen.add(old.Number)
		return true
	}
	return c.change(r, old)
}

// isFirst reports whether no row of the chunk before this one has the key, which is
// not known, and notes it.
func (c *comparison) isFirst(key string) bool {
	if c.fresh == nil {
		c.fresh = make(map[string]struct{})
	}
	before := len(c.fresh)
	c.fresh[key] = struct{}{}
	return len(c.fresh) > before
}

func (c *comparison) add(r *row) bool {
	if !c.mayChange() {
		return false
	}
	r.hashData()
	o := Observed{Key: r.key, Hash: r.hash[:], Version: 1, Number: c.chunk.Cursor.Rows + int64(len(c.chunk.New)) + 1}
	c.chunk.New = append(c.chunk.New, o)
	c.chunk.Live++
	if c.spec.Detect != DetectNew {
		c.seen.add(o.Number)
	}
	c.event(r, o, events.ChangeNew)
	return true
}

// change notes the next version of a row. One that had been gone and is back
// is new to whoever follows the events, under the next version of its key.
func (c *comparison) change(r *row, old Observed) bool {
	if !c.mayChange() {
		return false
	}
	what := events.ChangeChanged
	if old.Gone {
		what = events.ChangeNew
		c.chunk.Live++
	}
	o := Observed{Key: r.key, Hash: r.hash[:], Version: old.Version + 1, Number: old.Number}
	c.chunk.Changed = append(c.chunk.Changed, o)
	c.seen.add(o.Number)
	c.event(r, o, what)
	return true
}

func (c *comparison) mayChange() bool {
	// A sweep has a budget of its own, and a statement that no other can go on with
	// is read to its end.
	if c.most > 0 && c.changed >= c.most && c.sweep == nil && !c.isWhole() {
		return false
	}
	c.changed++
	return true
}

func (c *comparison) event(r *row, o Observed, what events.Change) {
	at := r.time
	if at.IsZero() {
		at = c.at
	}
	c.chunk.Events = append(c.chunk.Events, c.newEvent(o, what, at, r.data))
}

func (p *poll) newEvent(o Observed, what events.Change, at time.Time, data []byte) events.Event {
	return events.Event{
		ID:      events.NewID(p.spec.Stream, p.cursor.Epoch, o.Key, o.Version, o.Hash),
		Stream:  p.spec.Stream,
		Type:    p.spec.EventType,
		Subject: o.Key,
		Version: o.Version,
		Change:  what,
		Time:    events.Writable(at),
		Data:    data,
	}
}

func (c *comparison) keyColumns() string {
	return fmt.Sprintf("key (%s)", strings.Join(c.spec.Query.Key, ", "))
}

// settle moves the marks over the rows that were compared. Unless all rows are
// read they are in order, so the last one with a timestamp has the highest.
func (c *comparison) settle(rows []row) {
	if c.spec.readsAll() {
		for i := range rows {
			c.advance(rows[i].cursor)
		}
		c.generation.reach(rows)
	} else if c.readsApart() {
		c.apart.reach(rows)
	} else {
		for i := len(rows) - 1; i >= 0; i-- {
			if r := &rows[i]; r.cursor != "" {
				c.reach(r)
				break
			}
		}
	}
	c.noteFuture(rows)
	c.sweep.count(len(rows))
	c.mark(&c.chunk)
}

// reach moves what a poll or a sweep is known by up to a row.
func (c *comparison) reach(r *row) {
	if c.sweep != nil {
		c.sweep.position = r.cursor
		return
	}
	c.advance(r.cursor)
	c.noteReread()
	c.lastTime = r.time
}
