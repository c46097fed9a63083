package observer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"time"
)

// hashSize is how much of the SHA-256 of a row's data is remembered: two rows
// are never the same by accident, and ten million hashes take 160 MB.
const hashSize = 16

// row is a source's row that outlives the next one.
type row struct {
	key, cursor string
	time        time.Time
	data        []byte
	err         error
	hash        [hashSize]byte
}

// batch is the rows of one chunk and the keys to look up for them.
type batch struct {
	rows  []row
	keys  []string
	bytes int
}

// reader reads ahead: while one batch is compared and committed, it prepares
// the next, and no more than that. Batches are not used again, for the store
// may still hold what was made of them.
type reader struct {
	poll    *poll
	rows    Rows
	batches chan *batch
	cancel  context.CancelFunc
	data    arena
	size    int // Rows in the last batch, for the capacity of the next.

	// These are set before batches is closed.
	err      error
	panicked any
}

func (p *poll) startReading(ctx context.Context) (*reader, error) {
	from := p.start.Low
	if p.spec.Detect == DetectSnapshot {
		from = ""
	}
	reading, cancel := context.WithCancel(ctx)
	rows, err := p.src.Read(reading, p.spec.Query, from)
	if err != nil {
		cancel()
		return nil, failed(ctx, "read source", err)
	}
	r := &reader{poll: p, rows: rows, batches: make(chan *batch), cancel: cancel}
	go r.run(reading)
	return r, nil
}

// failure says why the batches ended, if not because all rows were read.
func (r *reader) failure(ctx context.Context) error {
	if r.panicked != nil {
		r.stop()
	}
	if r.err != nil || ctx.Err() != nil {
		return failed(ctx, "read source", r.err)
	}
	return nil
}

// stop ends the reading and waits for it. A panic of the source goes on here,
// in the goroutine of the caller, who can recover it. It may be called twice.
func (r *reader) stop() {
	r.cancel()
	for range r.batches { // What was read ahead is dropped.
		continue
	}
	if v := r.panicked; v != nil {
		r.panicked = nil
		panic(v)
	}
}

func (r *reader) run(ctx context.Context) {
	defer close(r.batches)
	defer func() {
		if v := recover(); v != nil {
			r.panicked = fmt.Sprintf("reading source: %v\n\n%s", v, debug.Stack())
		}
	}()
	r.err = r.read(ctx)
}

func (r *reader) read(ctx context.Context) (err error) {
	defer func() {
		if closing := r.rows.Close(); err == nil {
			err = closing
		}
	}()
	b, last := r.newBatch(), ""
	for r.rows.Next() {
		row := r.rows.Row()
		if !r.inOrder(last, row.Cursor) {
			return ErrOutOfOrder
		}
		if row.Cursor != "" {
			last = row.Cursor
		}
		if r.isFull(b, row) {
			if !r.send(ctx, b) {
				return ctx.Err()
			}
			b = r.newBatch()
		}
		r.add(b, row)
	}
	// Rows before a failure are as good as any.
	if len(b.rows) > 0 && !r.send(ctx, b) {
		return ctx.Err()
	}
	return r.rows.Err()
}

func (r *reader) send(ctx context.Context, b *batch) bool {
	r.size = len(b.rows)
	select {
	case r.batches <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *reader) inOrder(last, cursor string) bool {
	return cursor == "" || cursor == last || r.poll.src.Compare(last, cursor) <= 0
}

func (r *reader) isFull(b *batch, row *Row) bool {
	if len(b.rows) == 0 {
		return false
	}
	return len(b.rows) >= r.poll.spec.ChunkRows || b.bytes+len(row.Key)+len(row.Data) > r.poll.spec.ChunkBytes
}

func (r *reader) newBatch() *batch {
	return &batch{rows: make([]row, 0, r.size), keys: make([]string, 0, r.size)}
}

func (r *reader) add(b *batch, from *Row) {
	to := row{
		key:    from.Key,
		cursor: from.Cursor,
		time:   from.Time,
		data:   r.data.copy(from.Data),
		err:    from.Err,
	}
	if to.err == nil {
		sum := sha256.Sum256(to.data)
		copy(to.hash[:], sum[:])
	}
	b.rows = append(b.rows, to)
	b.bytes += len(to.key) + len(to.data)
	// A poison row is looked up as well: it exists, so it is not gone.
	if to.key != "" {
		b.keys = append(b.keys, to.key)
	}
}
