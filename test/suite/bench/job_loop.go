package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/jsontext"
)

// loopChunk is a size from which on larger ones made the loop no faster; the flag
// -loops tries others.
const loopChunk = 50_000

// loopBacklog is the hand-written loop, as fast as pgx allows for: it knows the
// columns at compile time, reads with one SELECT, appends each row's bytes to the
// streams of two COPYs, and reads on while the chunk before is stored. It looks
// nothing up, checks no lease, and keeps no cursor, so it cannot go on after a
// failure without losing rows or repeating them.
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
	full := make(chan *copies)
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() (err error) {
		defer close(full)
		n, err = readOrders(ctx, from, size, full)
		return err
	})
	tasks.Go(func() error {
		for c := range full {
			if err := c.store(ctx, to); err != nil {
				return err
			}
		}
		return nil
	})
	err = tasks.Wait()
	return n, err
}

// readOrders hands over chunks of orders. The receiver of one is done with that
// before. Identifiers, texts and numbers come in the form in which JSON has them,
// the time as COPY wants it.
func readOrders(ctx context.Context, from *pgx.Conn, size int, full chan<- *copies) (n int64, err error) {
	const text, binary = pgx.TextFormatCode, pgx.BinaryFormatCode
	rows, err := from.Query(ctx, `
		SELECT id, customer, status, total, note, updated_at
		  FROM orders
		 ORDER BY updated_at, id`, pgx.QueryResultFormats{text, text, text, text, text, binary})
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	c, other := newCopies(size).empty(), newCopies(size)
	for rows.Next() {
		n++
		if err := c.add(rows.RawValues(), n); err != nil {
			return n, err
		}
		if c.rows < size {
			continue
		}
		if err := c.handOver(ctx, full); err != nil {
			return n, err
		}
		c, other = other.empty(), c
	}
	if err := rows.Err(); err != nil {
		return n, err
	}
	return n, c.handOver(ctx, full)
}

func (c *copies) handOver(ctx context.Context, full chan<- *copies) error {
	select {
	case full <- c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// copies are a chunk as the streams of two binary COPYs.
type copies struct {
	rows             int
	observed, events []byte
}

const (
	copyObservedSQL = `COPY obs_observed (stream_id, version, row_number, key, row_hash) FROM STDIN (FORMAT binary)`
	copyEventsSQL   = `COPY obs_event (data, stream, seq, event_id, type, subject, version, change, time) FROM STDIN (FORMAT binary)`
	// A stream begins with a signature, flags and the length of an extension, and
	// ends with a row of -1 columns.
	copyBegin = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyEnd   = "\xff\xff"
)

// newCopies has room for chunks of ordinary orders.
func newCopies(size int) *copies {
	return &copies{observed: make([]byte, 0, 64*size), events: make([]byte, 0, 512*size)}
}

func (c *copies) empty() *copies {
	c.rows, c.observed, c.events = 0, append(c.observed[:0], copyBegin...), append(c.events[:0], copyBegin...)
	return c
}

// add appends an order. The event's data comes first: its hash is part of what follows.
func (c *copies) add(order [][]byte, seq int64) error {
	key := string(order[0])
	b := c.events
	b = append(b, 0, 9, 0, 0, 0, 0) // the columns, and room for the length of the first
	begin := len(b)
	b, err := appendOrder(b, order)
	if err != nil {
		return err
	}
	data := b[begin:]
	binary.BigEndian.PutUint32(b[begin-4:], uint32(len(data)))
	sum := sha256.Sum256(data)
	hash := sum[:16]
	id := events.NewID(stream, 0, key, 1, hash)
	b = appendColumn(b, stream)
	b = appendInt8(b, seq)
	b = appendColumn(b, id[:])
	b = appendColumn(b, events.TypeNewOrder)
	b = appendColumn(b, key)
	b = appendInt4(b, 1)
	b = appendColumn(b, events.ChangeNew)
	c.events = appendColumn(b, order[5])

	b = c.observed
	b = append(b, 0, 5)
	b = appendInt4(b, 1)
	b = appendInt4(b, 1)
	b = appendInt8(b, seq)
	b = appendColumn(b, key)
	c.observed = appendColumn(b, hash)
	c.rows++
	return nil
}

// appendOrder appends the JSON of an order, which is byte for byte what the poll
// makes of it.
func appendOrder(b []byte, order [][]byte) ([]byte, error) {
	b = append(append(b, `{"id":`...), order[0]...)
	b, customer := jsontext.AppendString(append(b, `,"customer":`...), order[1])
	b, status := jsontext.AppendString(append(b, `,"status":`...), order[2])
	b = append(append(b, `,"total":`...), order[3]...)
	b, note := jsontext.AppendString(append(b, `,"note":`...), order[4])
	if !customer || !status || !note {
		return nil, fmt.Errorf("order %s has a text that is not UTF-8", order[0])
	}
	// PostgreSQL counts microseconds from the beginning of 2000.
	const epoch = 946_684_800_000_000
	at := time.UnixMicro(epoch + int64(binary.BigEndian.Uint64(order[5]))).UTC()
	return append(at.AppendFormat(append(b, `,"updated_at":"`...), time.RFC3339Nano), `"}`...), nil
}

func appendColumn[T ~string | ~[]byte](b []byte, value T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}

func appendInt4(b []byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, 0, 0, 0, 4), n)
}

func appendInt8(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 8), uint64(n))
}

// store commits a chunk.
func (c *copies) store(ctx context.Context, to *pgx.Conn) error {
	return pgx.BeginFunc(ctx, to, func(pgx.Tx) error {
		if err := copyInto(ctx, to, copyObservedSQL, c.observed); err != nil {
			return err
		}
		return copyInto(ctx, to, copyEventsSQL, c.events)
	})
}

func copyInto(ctx context.Context, to *pgx.Conn, sql string, rows []byte) error {
	_, err := to.PgConn().CopyFrom(ctx, io.MultiReader(bytes.NewReader(rows), strings.NewReader(copyEnd)), sql)
	return err
}
