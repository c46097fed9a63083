package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/events"
)

// loopChunk is the size at which the loop was the fastest, of 2,500 to 100,000.
const loopChunk = 50_000

// order is a row as the loop knows it. Its JSON is byte for byte what the
// poll makes of the row.
type order struct {
	ID        int64       `json:"id"`
	Customer  string      `json:"customer"`
	Status    string      `json:"status"`
	Total     json.Number `json:"total"`
	Note      string      `json:"note"`
	UpdatedAt time.Time   `json:"updated_at"`
}

// entry is an order that is ready to be stored.
type entry struct {
	key        string
	seq        int64
	id         [16]byte
	time       time.Time
	data, hash []byte
}

// loopBacklog is the hand-written loop: it knows the columns at compile time,
// reads with one SELECT, encodes, and copies chunk by chunk into the two
// tables. It looks nothing up, checks no lease, and keeps no cursor, so it
// cannot go on after a failure without losing rows or repeating them.
func loopBacklog(ctx context.Context, j job, watch *stopwatch) (n int64, err error) {
	from, err := pgx.Connect(ctx, j.Source)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close(context.WithoutCancel(ctx))) }()
	to, err := pgx.Connect(ctx, j.Database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close(context.WithoutCancel(ctx))) }()
	watch.start()
	defer watch.stop()
	return loop(ctx, from, to, j.Chunk)
}

func loop(ctx context.Context, from, to *pgx.Conn, size int) (n int64, err error) {
	rows, err := from.Query(ctx, `
		SELECT id, customer, status, total::text, note, updated_at
		  FROM orders
		 ORDER BY updated_at, id`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	chunk := make([]entry, 0, size)
	for rows.Next() {
		var o order
		if err := rows.Scan(&o.ID, &o.Customer, &o.Status, &o.Total, &o.Note, &o.UpdatedAt); err != nil {
			return n, err
		}
		n++
		e, err := encode(o, n)
		if err != nil {
			return n, err
		}
		if chunk = append(chunk, e); len(chunk) == size {
			if err := store(ctx, to, chunk); err != nil {
				return n, err
			}
			chunk = chunk[:0]
		}
	}
	if err := rows.Err(); err != nil {
		return n, err
	}
	return n, store(ctx, to, chunk)
}

func encode(o order, seq int64) (entry, error) {
	o.UpdatedAt = o.UpdatedAt.UTC()
	data, err := json.Marshal(o)
	if err != nil {
		return entry{}, fmt.Errorf("encode an order: %w", err)
	}
	sum := sha256.Sum256(data)
	key := strconv.FormatInt(o.ID, 10)
	return entry{
		key: key, seq: seq, id: events.NewID(stream, 0, key, 1, sum[:16]), time: o.UpdatedAt, data: data, hash: sum[:16],
	}, nil
}

// store commits a chunk.
func store(ctx context.Context, to *pgx.Conn, chunk []entry) error {
	return pgx.BeginFunc(ctx, to, func(tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"obs_observed"},
			[]string{"stream_id", "version", "row_number", "key", "row_hash"},
			pgx.CopyFromSlice(len(chunk), func(i int) ([]any, error) {
				e := &chunk[i]
				return []any{1, 1, e.seq, e.key, e.hash}, nil
			}))
		if err != nil {
			return err
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"obs_event"},
			[]string{"stream", "seq", "event_id", "type", "subject", "version", "change", "time", "data"},
			pgx.CopyFromSlice(len(chunk), func(i int) ([]any, error) {
				e := &chunk[i]
				return []any{stream, e.seq, e.id, events.TypeNewOrder, e.key, 1, string(events.ChangeNew), e.time, e.data}, nil
			}))
		return err
	})
}
