package observer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// errNoRows ends a statement that reads all rows when it hands over none any more.
var errNoRows = errors.New("no row has arrived for as long as poll-timeout")

// ErrPollTime is the cause of the end of a poll that took longer than
// [Spec.PollTime] and committed nothing.
var ErrPollTime = errors.New("the poll took longer than poll-timeout")

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

// generation is a [Generation] in the making.
type generation struct {
	Generation
	byKey bool
	order string // see [Source.KeyOrder]
	// seen is Seen. The rows of the present statement are apart: a row that two
	// statements return is no second row of its key.
	seen bitmap
	// stored says that the store holds what to go on with, storedAt when that was
	// written, or the poll began. moved says that there is more to remember by now.
	stored, moved bool
	storedAt      time.Time
	// noted is when the last one came to its end, as far as the store knows.
	noted time.Time
}

// planGeneration begins the reading of all rows, or goes on with it.
func (p *poll) planGeneration(ctx context.Context) (err error) {
	if !p.spec.readsAll() {
		return nil
	}
	g := &p.generation
	if g.order, err = p.src.KeyOrder(ctx, p.spec.Query); err != nil {
		return failed(ctx, "look for an index on the key", err)
	}
	g.byKey = g.order != ""
	last, err := p.st.Generation(ctx, p.cursor)
	if err != nil {
		return failed(ctx, "read how far the last poll has come", err)
	}
	g.noted, g.storedAt = last.FinishedAt, time.Now()
	g.stored = last.Reading != "" && last.FinishedAt.IsZero()
	// With an epoch the numbers of rows begin anew. Once all rows were read, their
	// order is of no matter any more.
	reading := fmt.Sprint(p.fingerprint, " ", p.next.definition, " ", p.next.identity, " ", p.cursor.Epoch, " ")
	goesOn := last.Complete && strings.HasPrefix(last.Reading, reading) || g.byKey && last.Key != "" && last.Reading == reading+g.order
	if !g.stored || !goesOn {
		g.Generation = Generation{Reading: reading + g.order, StartedAt: p.at, Took: last.Took}
		return nil
	}
	g.Generation, p.complete = last, last.Complete
	g.seen, g.Seen = decodeBitmap(last.Seen), nil
	return nil
}

// isWhole says that all rows are read by one statement, because no later one could
// begin where it has ended.
func (p *poll) isWhole() bool { return p.spec.readsAll() && !p.generation.byKey }

// reach notes how far the reading has come. Rows whose key cannot be read are read
// again, if it goes on.
func (g *generation) reach(rows []row) {
	g.Rows += int64(len(rows))
	g.moved = true
	if !g.byKey {
		return
	}
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].key != "" {
			g.Key = rows[i].key
			return
		}
	}
}

// soFar is what to remember of a generation that has not come to its end.
func (p *poll) soFar() *Generation {
	g := p.generation.Generation
	if g.Key != "" || g.Complete {
		p.generation.seen.merge(p.seen)
		g.Seen = p.generation.seen.encode()
	}
	return &g
}

// ended is what to remember of one that has come to its end.
func (p *poll) ended() *Generation {
	g := p.generation.Generation
	g.Key, g.Complete, g.FinishedAt = "", false, p.spec.Now()
	g.Took = max(0, g.FinishedAt.Sub(g.StartedAt))
	return &g
}

// atEnd is what a poll remembers with its last chunk; nil for nothing. One that
// reads all rows at once, as most do, notes now and then how long that takes.
func (p *poll) atEnd() *Generation {
	switch g := &p.generation; {
	case !p.spec.readsAll():
		return nil
	case !p.complete && g.moved:
		return p.soFar()
	case p.complete && (g.stored || p.at.Sub(g.noted) >= rereadNoted):
		return p.ended()
	}
	return nil
}

// keepGeneration stores how far the reading has come, if that was longer ago.
func (p *poll) keepGeneration(ctx context.Context, after time.Duration) error {
	if !p.generation.moved || time.Since(p.generation.storedAt) < after {
		return nil
	}
	ch := p.newChunk()
	ch.Generation = p.soFar()
	return p.commit(ctx, ch)
}

// commit notes what was stored; nil is for a chunk without it.
func (g *generation) commit(stored *Generation) {
	if stored == nil {
		return
	}
	g.stored, g.storedAt, g.moved = stored.FinishedAt.IsZero(), time.Now(), false
}

// leastLeft is the share of a poll's time that is worth another statement.
const leastLeft = 16

// isLate says that a poll which another goes on with had better end.
func (p *poll) isLate(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline)/2 < p.spec.PollTime/leastLeft
}

// statementTime is for how long the next statement may hand over rows.
func (p *poll) statementTime(ctx context.Context) time.Duration {
	switch {
	case p.generation.byKey:
		return p.stepTime(ctx)
	case p.readsApart() && !p.apart.until.IsZero():
		return min(p.spec.StatementTime, time.Until(p.apart.until))
	}
	return p.spec.StatementTime
}

// stepTime is for how long a poll works on a generation before it stores how far it
// has come. What it has not stored when its time is over is done again, so it keeps
// half of the time that is left.
func (p *poll) stepTime(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return p.spec.StatementTime
	}
	return min(p.spec.StatementTime, time.Until(deadline)/2)
}

// limited is a context for all that a poll does in its time.
func (p *poll) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return p.limitedTo(ctx, p.spec.PollTime)
}

func (p *poll) limitedTo(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if p.spec.PollTime == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, ErrPollTime)
}

// whileRowsArrive is a context for a statement that is read to its end, however
// long that takes. It ends when nothing has come of it for the time of a poll.
func (p *poll) whileRowsArrive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	stop := func() {
		cancel(context.Canceled)
		watch.Wait()
	}
	if p.spec.PollTime == 0 {
		return ctx, stop
	}
	watch.Go(func() {
		ticker := time.NewTicker(p.spec.PollTime)
		defer ticker.Stop()
		for last := int64(-1); ; {
			now := p.arrived.Load()
			if now == last {
				cancel(errNoRows)
				return
			}
			last = now
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return ctx, stop
}
