package observer

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// Generation is one reading of all rows of a source, by an observer that has to
// read them all. Where an index serves the key it takes as many polls as it needs,
// on any nodes; else it is one statement.
type Generation struct {
	// Reading identifies what is read. A generation of anything else is not gone
	// on with.
	Reading string
	// Key is the last key that was compared, where the reading goes on; empty for
	// the beginning. Once it is Complete, what is left is to look for the live rows
	// that it lacked, and Key is the last one that was looked for.
	Key      string
	Complete bool
	// Seen are the numbers of the rows that were met, as [bitmap] writes them.
	Seen []byte
	// Rows were read, some of them twice where a poll went on.
	Rows int64
	// StartedAt is when it began, FinishedAt when it came to its end; zero while it
	// has not. Both are by the clocks of nodes.
	StartedAt, FinishedAt time.Time
	// Took is for how long the last one lasted that came to its end; 0 for none.
	Took time.Duration
}

// generation is a [Generation] in the making, which is the reading of an observer that
// reads all rows. All but its methods as a reading are for nil as well.
type generation struct {
	*journal
	Generation
	byKey bool
	order string // see [Source.KeyOrder]
	// seen is Seen. The rows of the present statement are apart: a row that two
	// statements return is no second row of its key.
	seen    bitmap
	present *bitmap
	// stored says that the store holds what to go on with, storedAt when that was
	// written, or the poll began. moved says that there is more to remember by now.
	stored, moved bool
	storedAt      time.Time
	// noted is when the last one came to its end, as far as the store knows.
	noted time.Time
}

// newGeneration begins the reading of all rows, or goes on with it.
func newGeneration(ctx context.Context, j *journal, present *bitmap) (*generation, error) {
	order, err := j.src.KeyOrder(ctx, j.spec.Query)
	if err != nil {
		return nil, failed(ctx, "look for an index on the key", err)
	}
	last, err := j.st.Generation(ctx, j.cursor)
	if err != nil {
		return nil, failed(ctx, "read how far the last poll has come", err)
	}
	g := &generation{journal: j, byKey: order != "", order: order, present: present, noted: last.FinishedAt, storedAt: time.Now()}
	g.stored = last.Reading != "" && last.FinishedAt.IsZero()
	// With an epoch the numbers of rows begin anew. Once all rows were read, their
	// order is of no matter any more.
	reading := fmt.Sprint(j.fingerprint, " ", j.next.definition, " ", j.next.identity, " ", j.cursor.Epoch, " ")
	goesOn := last.Complete && strings.HasPrefix(last.Reading, reading) || g.byKey && last.Key != "" && last.Reading == reading+g.order
	if !g.stored || !goesOn {
		g.Generation = Generation{Reading: reading + g.order, StartedAt: j.at, Took: last.Took}
		return g, nil
	}
	g.Generation = last
	g.seen, g.Seen = decodeBitmap(last.Seen), nil
	return g, nil
}

// isWhole reports whether all rows are read by one statement, because no later one could
// begin where it has ended.
func (g *generation) isWhole() bool { return g != nil && !g.byKey }

func (g *generation) part() Part { return PartAll }

// statement is for all forms of timestamps: their order is of no matter.
func (g *generation) statement() (Query, Range) {
	q := g.query()
	q.Form = ""
	if g.byKey {
		return q, Range{ByKey: true, Order: g.order, Key: g.Key}
	}
	return q, Range{}
}

func (g *generation) lasts(ctx context.Context) time.Duration { return g.spec.stepTime(ctx) }

func (g *generation) canCut(r *reader, _ *Row) bool { return g.byKey && r.hasMoved() }

func (g *generation) reach(rows []row) {
	for i := range rows {
		g.advance(rows[i].cursor, false)
	}
}

func (g *generation) settle(_ *reader, rows []row) (ends bool) {
	g.Rows += int64(len(rows))
	g.moved = true
	if g.byKey {
		g.Key = cmp.Or(lastKey(rows), g.Key)
	}
	return false
}

func (g *generation) end(ctx context.Context, r *reader, seen *bitmap) outcome {
	g.seen.merge(*seen)
	seen.clear()
	switch {
	case !r.cut:
		return complete
	case g.spec.isLate(ctx):
		return full
	}
	return unfinished
}

// soFar is what to remember of a generation that has not come to its end.
func (g *generation) soFar() *Generation {
	so := g.Generation
	if so.Key != "" || so.Complete {
		g.seen.merge(*g.present)
		so.Seen = g.seen.encode()
	}
	return &so
}

// ended is what to remember of one that has come to its end.
func (g *generation) ended() *Generation {
	end := g.Generation
	end.Key, end.Complete, end.FinishedAt = "", false, g.spec.Now()
	end.Took = max(0, end.FinishedAt.Sub(end.StartedAt))
	return &end
}

// atEnd is what a poll remembers with its last chunk; nil for nothing. One that
// reads all rows at once, as most do, notes now and then how long that takes.
func (g *generation) atEnd(done bool) *Generation {
	switch {
	case g == nil:
		return nil
	case !done && g.moved:
		return g.soFar()
	case done && (g.stored || g.at.Sub(g.noted) >= fullReadNoted):
		return g.ended()
	}
	return nil
}

// keep stores how far the reading has come, if that was longer ago.
func (g *generation) keep(ctx context.Context, after time.Duration) error {
	if g == nil || !g.moved || time.Since(g.storedAt) < after {
		return nil
	}
	ch := g.newChunk()
	ch.Generation = g.soFar()
	if err := g.commit(ctx, ch); err != nil {
		return err
	}
	g.stored, g.storedAt, g.moved = true, time.Now(), false
	return nil
}
