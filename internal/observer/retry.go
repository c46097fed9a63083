package observer

import (
	"context"
	"slices"
)

// RetryOutcome says what a retry has made of a key.
type RetryOutcome string

// The outcomes.
const (
	// RetryEvent is a row that has become an event.
	RetryEvent RetryOutcome = "event"
	// RetryObserved is a row that was observed before as it is: a poll, or an earlier
	// retry, has made the event.
	RetryObserved RetryOutcome = "observed"
	// RetryPoison is a row that still cannot become an event.
	RetryPoison RetryOutcome = "poison"
	// RetryMissing is a key by which no row was found.
	RetryMissing RetryOutcome = "missing"
)

// Retried is what a retry has made of a key.
type Retried struct {
	Key     string
	Outcome RetryOutcome
	// Reason says what is wrong with a poison row.
	Reason string
	// Seq is the sequence of the event; 0 for none.
	Seq int64
}

// Retry reads rows again by their keys, after what made them poison was fixed, and
// commits those that are new or have changed, each in a chunk of its own, under the same
// lease and with the same cursor as a poll. A poll that commits meanwhile makes the
// retry fail; what was committed is observed, and makes no second event. Marks stay
// where they are. A row that is poison still is not committed, because its record is
// there.
//
// It returns what has become of the keys before an error: one of a poll,
// [ErrSourceReplaced], [ErrReadAnew] and [ErrNoKeyLookup].
func (o *Observer) Retry(ctx context.Context, src Source, st Store, keys []string) (all []Retried, err error) {
	r := &retry{comparer: &comparer{journal: newJournal(o, src, st)}}
	stream := origin{r.journal}
	if err := stream.prepareBeside(ctx); err != nil {
		return nil, err
	}
	if stream.isFresh() {
		return nil, ErrReadAnew
	}
	if o.spec.readsAll() {
		if r.generation, err = st.Generation(ctx, r.cursor); err != nil {
			return nil, failed(ctx, "read how far the last poll has come", err)
		}
	}
	for _, key := range keys {
		done, err := r.one(ctx, key)
		if err != nil {
			return all, err
		}
		all = append(all, done)
	}
	return all, nil
}

// retry is an [Observer.Retry] that runs.
type retry struct {
	*comparer
	// generation is the last one of an observer that reads all rows.
	generation Generation
}

// one reads the row of a key, and commits it if it differs from what was observed.
func (r *retry) one(ctx context.Context, key string) (Retried, error) {
	done := Retried{Key: key}
	rows, err := r.read(ctx, key)
	switch {
	case err != nil:
		return done, err
	case len(rows) == 0:
		done.Outcome = RetryMissing
		return done, nil
	}
	if done.Reason = r.fault(rows); done.Reason != "" {
		done.Outcome = RetryPoison
		return done, nil
	}
	r.seen = bitmap{}
	ch, _, err := r.compare(ctx, PartKey, &batch{rows: rows, keys: []string{key}}, false)
	if err != nil {
		return done, err
	}
	if len(ch.Events) == 0 {
		done.Outcome = RetryObserved
		return done, nil
	}
	if err := r.see(ctx, slices.Concat(ch.New, ch.Changed)); err != nil {
		return done, err
	}
	if err := r.commit(ctx, ch); err != nil {
		return done, err
	}
	done.Outcome, done.Seq = RetryEvent, r.cursor.LastSeq
	return done, nil
}

// fault says why the rows of a key are poison; empty where the one row is not.
func (r *retry) fault(rows []row) string {
	switch {
	case len(rows) > 1:
		return keyColumns(r.spec) + " is not unique"
	case rows[0].err != nil:
		return rows[0].err.Error()
	}
	return ""
}

// read returns the rows of a key, without those that the source takes for equal.
func (r *retry) read(ctx context.Context, key string) (found []row, err error) {
	q := r.query()
	if slices.ContainsFunc(q.Key, func(column string) bool { return q.Redaction(column) == RedactHash }) {
		return nil, ErrNoKeyLookup // The source does not know the hash.
	}
	if r.spec.readsAll() {
		q.Form = "" // As such an observer reads them.
	}
	rows, err := r.src.Read(ctx, q, Range{Part: PartKey, Key: key})
	if err != nil {
		return nil, failed(ctx, "read source", err)
	}
	defer func() {
		if closing := rows.Close(); err == nil {
			err = closing
		}
	}()
	if err := r.checkColumns(rows.Columns(), rows.KeyColumns(), false); err != nil {
		return nil, err
	}
	for rows.Next() {
		if from := rows.Row(); from.Key == key {
			found = append(found, row{key: from.Key, cursor: from.Cursor, time: r.instant(from.Time), data: slices.Clone(from.Data), asked: from.Asked, err: from.Err})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, failed(ctx, "read source", err)
	}
	return found, nil
}

// see adds rows that are about to be committed to what an unfinished reading of all rows
// has seen, or its end would take them for gone. That comes in a commit before theirs:
// if this process dies between the two, the reading counts a row too many, and finds a
// row that is gone one reading later.
func (r *retry) see(ctx context.Context, rows []Observed) error {
	if r.generation.Reading == "" || !r.generation.FinishedAt.IsZero() {
		return nil
	}
	seen := decodeBitmap(r.generation.Seen)
	for _, o := range rows {
		seen.add(o.Number)
	}
	r.generation.Seen = seen.encode()
	return r.commit(ctx, Chunk{Generation: &r.generation})
}
