package observer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/events"
)

// goneScan bounds the missing rows that are collected before they are committed, in
// chunks.
const goneScan = 20

// goneFloor is how many rows may go at once from a table that is not empty then: in a
// small table a few rows are a large share.
const goneFloor = 10

// errEnough ends a visit of the live rows.
var errEnough = errors.New("enough")

// goneHash is the hash of a row that has no data any more. No row of a source has it,
// so a row that comes back always differs.
func goneHash() []byte {
	sum := sha256.Sum256([]byte("gone"))
	return sum[:hashSize]
}

// markGone makes an event of each live row that the snapshot lacked. The number of rows
// that it had tells whether there are any. If the poll has too little time, the next
// one goes on.
func (g *generation) markGone(ctx context.Context) (outcome, error) {
	missing := g.cursor.Live - g.seen.count
	if missing == 0 {
		return complete, nil
	}
	if err := g.believe(missing); err != nil {
		return complete, err
	}
	if !g.Complete {
		g.Complete, g.Key, g.moved = true, "", true
	}
	for g.cursor.Live != g.seen.count {
		more, err := g.markSome(ctx)
		switch {
		case err != nil || !more:
			return complete, err
		case g.spec.isLate(ctx):
			return full, nil
		}
		if err := g.keep(ctx, 0); err != nil {
			return complete, err
		}
	}
	return complete, nil
}

// markSome looks for missing rows once, and commits those that it finds.
func (g *generation) markSome(ctx context.Context) (more bool, err error) {
	found, more, err := g.findMissing(ctx)
	if err != nil {
		return false, err
	}
	for rows := range slices.Chunk(found, g.spec.ChunkRows) {
		g.use(RefusalGone, len(rows))
		if err := g.commit(ctx, g.goneChunk(rows)); err != nil {
			return false, err
		}
	}
	return more, nil
}

// believe refuses a snapshot that is more likely broken than true, such as a table in
// the middle of a reload or a view that lost its join.
func (g *generation) believe(missing int64) error {
	before := g.start.Live
	may := max(goneFloor, int64(g.spec.MaxGone*float64(before)))
	if g.Rows == 0 {
		may = 0
	}
	if missing <= max(may, g.allowed(RefusalGone)) {
		return nil
	}
	r := g.refuse(ErrMassDisappearance, Refusal{
		Kind: RefusalGone, Rows: missing,
		Text: fmt.Sprintf("%d of %d live rows are gone, at most %d may go at once: no row was marked as gone", missing, before, may),
	}, "if they are meant to be gone")
	if g.stored {
		r.ended = g.ended() // Another one looks for the missing rows.
	}
	return r
}

// findMissing reads live rows for a step's time, or until it has found enough, and
// reports whether there are more. It returns them in the order of their numbers.
func (g *generation) findMissing(ctx context.Context) (found []Observed, more bool, err error) {
	ends := time.Now().Add(g.spec.stepTime(ctx))
	err = g.st.Live(ctx, g.cursor, g.Key, func(o Observed) error {
		g.Key, g.moved = o.Key, true
		if !g.seen.has(o.Number) {
			found = append(found, o)
		}
		if len(found) == goneScan*g.spec.ChunkRows || !time.Now().Before(ends) {
			return errEnough
		}
		return nil
	})
	more = errors.Is(err, errEnough)
	if err != nil && !more {
		return nil, false, failed(ctx, "read live rows", err)
	}
	slices.SortFunc(found, func(a, b Observed) int { return cmp.Compare(a.Number, b.Number) })
	return found, more, nil
}

func (g *generation) goneChunk(rows []Observed) (ch Chunk) {
	for _, o := range rows {
		o.Hash, o.Version, o.Gone = goneHash(), o.Version+1, true
		ch.Changed = append(ch.Changed, o)
		data := g.keys.Object(g.spec.Query.Key, o.Key)
		ch.Events = append(ch.Events, g.newEvent(g.newID(o), o, events.ChangeGone, g.at, data))
	}
	return ch
}
