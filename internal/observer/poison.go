package observer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// poisonFloor is how many poison rows a chunk may always have: a few bad rows say
// nothing about the schema.
const poisonFloor = 10

// bury returns the poison rows of a chunk that are not noted yet, or refuses the chunk.
// readBefore says which of them an earlier poll may have read.
func (j *journal) bury(ctx context.Context, part Part, rows []row, dead []Dead, readBefore []bool) (left []Dead, err error) {
	if len(dead) == 0 {
		return nil, nil
	}
	known, err := j.st.Buried(ctx, j.cursor, dead)
	if err != nil {
		return nil, failed(ctx, "look up poison rows", err)
	}
	var unjudged []Dead
	again := 0
	for i, d := range dead {
		if known[i] != Buried {
			left = append(left, d)
		}
		if known[i] <= BuriedRefused {
			unjudged = append(unjudged, d)
			if readBefore[i] {
				again++
			}
		}
	}
	return left, j.judgePoison(part, rows, unjudged, again)
}

// judgePoison tells bad rows from a schema that has changed. Rows that an earlier poll
// may have read are weighed against all rows of the stream, because a chunk may have
// few others. Parts of a source that are poison by definition are not judged.
func (j *journal) judgePoison(part Part, rows []row, dead []Dead, again int) error {
	wanted := part == PartStray || part == PartUndated && j.spec.Query.NullTimestamp == NullError
	if len(dead) < poisonFloor || wanted {
		return nil
	}
	fresh, _ := j.fresh(rows)
	known := int64(len(rows)) + j.start.Rows
	if part.isApart() {
		known = int64(len(rows)) + j.cursor.Rows
	}
	n, of, what := len(dead)-again, fresh, "new rows"
	switch {
	case mostly(n, fresh):
	case mostly(again, known):
		n, of, what = again, known, "rows"
	default:
		return nil
	}
	if int64(len(dead)) <= j.allowed(RefusalPoison) {
		j.use(RefusalPoison, len(dead))
		return nil
	}
	reason, times := CommonReason(dead)
	return j.refusePoison(dead, int64(len(dead)),
		fmt.Sprintf("%d of %d %s are poison, and %d of those with %q", n, of, what, times, reason))
}

func (j *journal) refusePoison(dead []Dead, rows int64, text string) *refusedError {
	r := j.refuse(ErrMostlyPoison, Refusal{Kind: RefusalPoison, Rows: rows, Text: text},
		"that looks like a schema change; if they are bad rows that may be left out")
	r.dead = dead
	return r
}

// countPoison reads on behind a chunk that was refused, so that a person can accept
// all poison rows together. It takes at most half of the time that is left, because
// the refusal has to be noted.
func (j *journal) countPoison(ctx context.Context, batches <-chan *batch, err error) error {
	var r *refusedError
	if !errors.As(err, &r) || r.Kind != RefusalPoison {
		return err
	}
	if failed := j.commitCarried(ctx); failed != nil {
		return failed
	}
	ctx, cancel := halfOf(ctx)
	defer cancel()
	more := int64(0)
	room := j.spec.ChunkBytes // They are committed together.
	for i := range r.dead {
		room -= len(r.dead[i].Raw)
	}
	for {
		select {
		case <-ctx.Done():
			return j.refusePoison(r.dead, r.Rows+more, fmt.Sprintf("%s; at least %d more follow", r.Text, more))
		case b := <-batches:
			switch {
			case b == nil && more == 0:
				return err
			case b == nil:
				return j.refusePoison(r.dead, r.Rows+more, fmt.Sprintf("%s; %d more follow", r.Text, more))
			}
			for i := range b.rows {
				row := &b.rows[i]
				if row.err == nil {
					continue
				}
				more++
				if room -= len(row.data); room >= 0 && len(r.dead) < deadKept {
					r.dead = append(r.dead, Dead{Key: row.key, Reason: row.err.Error(), Raw: askedData(row.data, row.asked)})
				}
			}
		}
	}
}

// halfOf is a context that ends after half of the time that is left.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if half := halfLeft(ctx, 0); half != 0 {
		return context.WithTimeout(ctx, half)
	}
	return context.WithCancel(ctx)
}

// looksMostlyPoison judges rows before they are compared. The majority counts even of a
// few, because more like them may follow.
func (j *journal) looksMostlyPoison(rows []row) bool {
	fresh, dead := j.fresh(rows)
	return 2*dead > fresh
}

// fresh counts the rows that no earlier poll may have read, and of those the ones that
// the source cannot read.
func (j *journal) fresh(rows []row) (fresh, dead int64) {
	for i := range rows {
		if j.readBefore(&rows[i]) {
			continue
		}
		fresh++
		if rows[i].err != nil {
			dead++
		}
	}
	return fresh, dead
}

func mostly(dead int, of int64) bool { return dead >= poisonFloor && 2*int64(dead) > of }

// readBefore reports whether an earlier poll may have read the row. Readings of all
// rows have old and new ones in the same proportion every time, so there it does not
// matter. Each poll reads the rows in the future, and each step of a sweep those at
// which the last one ended.
func (j *journal) readBefore(r *row) bool {
	switch {
	case j.spec.readsAll():
		return false
	case j.sweep != nil:
		return r.cursor == j.sweep.start
	}
	return r.cursor == "" || j.isFuture(r.cursor) || j.src.Compare(r.cursor, j.start.Newest) <= 0
}

// PoisonClass says what of its row makes it poison. The values are those of metrics.
type PoisonClass string

// The classes.
const (
	PoisonTimestamp PoisonClass = "timestamp"
	PoisonKey       PoisonClass = "key"
	// PoisonColumn is a column that is none of the two.
	PoisonColumn PoisonClass = "column"
	// PoisonSize is a row that is too large.
	PoisonSize PoisonClass = "size"
)

// PoisonClass returns the class of [Dead.Reason].
func (q Query) PoisonClass(reason string) PoisonClass {
	name, isColumn := strings.CutPrefix(reason, "column ")
	of := func(column string) bool {
		return column != "" && len(name) > len(column) && name[len(column)] == ' ' && strings.EqualFold(name[:len(column)], column)
	}
	switch {
	case !isColumn && strings.HasPrefix(reason, "key "):
		return PoisonKey
	case !isColumn:
		return PoisonSize
	case of(q.Timestamp):
		return PoisonTimestamp
	case slices.ContainsFunc(q.Key, of):
		return PoisonKey
	}
	return PoisonColumn
}

// poisonRows are the poison rows of a poll.
type poisonRows struct {
	// met counts all of them, those that are known included; last is the reason of the last.
	met  int64
	last string
	// rows are those that were noted, without those of a refusal, which is an error; reason is
	// the most frequent one of a chunk.
	rows   int
	reason string
	times  int
}

func (p *poisonRows) note(ch Chunk) {
	if ch.Refused {
		return
	}
	p.rows += len(ch.Dead)
	if reason, times := CommonReason(ch.Dead); times > p.times {
		p.reason, p.times = reason, times
	}
}

// warnPoison tells of poison rows when their number or reason differs from what the process
// told last. A poll that has read rows and noted none of them begins anew.
func (p *poll) warnPoison(ctx context.Context) {
	found := p.poison
	if found.rows == 0 {
		if p.stats.Rows > 0 {
			p.Observer.poison.Store(nil)
		}
		return
	}
	if before := p.Observer.poison.Swap(&found); before != nil && before.rows == found.rows && before.reason == found.reason {
		return
	}
	p.log.LogAttrs(ctx, slog.LevelWarn, "Poison rows cannot become events; `observerd dead list` shows them",
		slog.Int("poison", found.rows), slog.String("reason", found.reason))
}

// warnShared tells once that a key is not unique, where that makes no row poison: an observer
// of new rows has one event for each key.
func (p *poll) warnShared(ctx context.Context) {
	if p.shared > 0 && !p.Observer.shared.Swap(true) {
		p.log.LogAttrs(ctx, slog.LevelWarn, "Rows share their key, and only the first of them becomes an event; set key to columns that identify a row",
			slog.Int64("rows", p.shared), slog.Any("key", p.spec.Query.Key))
	}
}

// CommonReason returns the most frequent reason of poison rows, the first of equals, and how
// often it occurs.
func CommonReason(dead []Dead) (reason string, n int) {
	counts := make(map[string]int)
	for _, d := range dead {
		counts[d.Reason]++
	}
	for _, d := range dead {
		if counts[d.Reason] > n {
			reason, n = d.Reason, counts[d.Reason]
		}
	}
	return reason, n
}
