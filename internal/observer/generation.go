package observer

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// generation is a [Generation] in the making, which is the reading of an observer that
// reads all rows. All but its methods as a reading are for nil as well.
type generation struct {
	*journal
	Generation
	byKey bool
	order string // see [Source.KeyOrder]
	// seen is Seen without the rows of the present statement: a row that two statements
	// return is no second row of its key.
	seen    bitmap
	present *bitmap
	// stored says that the store has an unfinished generation, storedAt when that was
	// written, or the poll began. moved says that this one is further.
	stored, moved bool
	storedAt      time.Time
	// noted is when the last one in the store was finished.
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
	// The numbers of rows begin anew with each epoch. The order of a complete reading
	// does not matter any more.
	reading := fmt.Sprint(j.fingerprint, " ", j.next.Definition, " ", j.next.Marks.Identity, " ", j.cursor.Epoch, " ")
	goesOn := last.Complete && strings.HasPrefix(last.Reading, reading) || g.byKey && last.Key != "" && last.Reading == reading+g.order
	if !g.stored || !goesOn {
		g.Generation = Generation{Reading: reading + g.order, StartedAt: j.at, Took: last.Took}
		if g.stored && last.Reading != g.Reading {
			j.instead = g.soFar()
		}
		return g, nil
	}
	g.Generation = last
	g.seen, g.Seen = decodeBitmap(last.Seen), nil
	return g, nil
}

// isWhole reports whether one statement reads all rows, because none can go on after it.
func (g *generation) isWhole() bool { return g != nil && !g.byKey }

// statement reads all forms of timestamps, because their order does not matter.
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

// soFar is what the store keeps of an unfinished generation.
func (g *generation) soFar() *Generation {
	so := g.Generation
	if so.Key != "" || so.Complete {
		g.seen.merge(*g.present)
		so.Seen = g.seen.encode()
	}
	return &so
}

// ended is what the store keeps of a finished one.
func (g *generation) ended() *Generation {
	end := g.Generation
	end.Key, end.Complete, end.FinishedAt = "", false, g.spec.Now()
	end.Took = max(0, end.FinishedAt.Sub(end.StartedAt))
	return &end
}

// atEnd is what the last chunk of a poll stores; nil for nothing. A generation that
// takes one poll, as most do, is noted now and then for the time that it took.
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

func (g *generation) keep(ctx context.Context, after time.Duration) error {
	if !g.moved || time.Since(g.storedAt) < after {
		return nil
	}
	if err := g.commit(ctx, Chunk{Generation: g.soFar()}); err != nil {
		return err
	}
	g.stored, g.storedAt, g.moved = true, time.Now(), false
	return nil
}
