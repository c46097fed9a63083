package observer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

// reading is a way through rows of a source, statement by statement. It knows how far it
// is. What the reader calls, lasts and canCut, does not change during a statement.
type reading interface {
	// statement is what the next one reads.
	statement() (Query, Range)
	// lasts is for how long that statement may hand over rows.
	lasts(ctx context.Context) time.Duration
	// canCut reports whether a statement that ends with this row leaves less to the one
	// after it.
	canCut(r *reader, row *Row) bool
	// reach follows rows that were compared and are to be committed.
	reach(rows []row)
	// settle follows them when they are, and reports whether the reading has to end.
	settle(r *reader, rows []row) (ends bool)
	// end follows a statement that came to its end. seen are the rows that it has met.
	end(ctx context.Context, r *reader, seen *bitmap) outcome
	// keep stores how far it is, if it was last stored so long ago; where the marks say
	// that, nothing.
	keep(ctx context.Context, after time.Duration) error
}

// outcome is what has become of a reading.
type outcome int

const (
	// unfinished means that another statement goes on.
	unfinished outcome = iota
	// full means that more rows are left than the poll may take.
	full
	// complete means that all rows were read that there are.
	complete
)

// reader reads one statement ahead: while a batch is compared and committed, it
// prepares the next one.
type reader struct {
	*input
	by      reading
	part    Part
	rows    Rows
	batches chan *batch
	// done are those of which nothing is needed any more, for their room.
	done   chan *batch
	cancel context.CancelFunc
	// arrived is [comparer.arrived].
	arrived *atomic.Int64
	// from and first are the timestamp and the key at which the read began, order is that
	// of keys within a timestamp.
	from, first, order string
	// mostlyPoison judges rows that are not compared yet.
	mostlyPoison func([]row) bool
	// hurry asks for the batch at the next row, full or not.
	hurry atomic.Bool
	// allNew says that all rows of the last chunk were new, so that those of the next may be.
	// Their epoch does not change while they are read.
	allNew atomic.Bool
	epoch  int64

	// dated is the number of rows that a limit may have counted. last is the highest
	// timestamp, lastKey the last key of those with it. cut says that the reader ended
	// the statement because of its time. They are for others once batches is closed.
	dated         int
	last, lastKey string
	cut           bool

	err      error
	panicked any
}

func startReading(ctx context.Context, j *journal, by reading, arrived *atomic.Int64) (*reader, error) {
	reading, cancel := context.WithCancel(ctx)
	query, in := by.statement()
	rows, err := j.src.Read(reading, query, in)
	if err != nil {
		cancel()
		return nil, failed(ctx, "read source", err)
	}
	full := in.Part == PartAll || j.sweep.kind() == SweepReconcile
	if err := j.checkColumns(rows.Columns(), rows.KeyColumns(), full); err != nil {
		cancel()
		return nil, errors.Join(err, rows.Close())
	}
	r := &reader{
		input: j.input, by: by, part: in.Part, rows: rows, arrived: arrived, from: in.From, first: in.Key, order: rows.KeyOrder(), epoch: j.cursor.Epoch,
		mostlyPoison: j.looksMostlyPoison, batches: make(chan *batch), done: make(chan *batch, 1), cancel: cancel,
	}
	go r.run(reading)
	return r, nil
}

// tied is [comparer.tied], once the reading has ended.
func (r *reader) tied() int {
	if r.order == "" && r.last != "" && r.last == r.from {
		return r.dated
	}
	return 0
}

// failure is why the batches ended before all rows were read; nil if they did not.
func (r *reader) failure(ctx context.Context) error {
	if r.panicked != nil {
		r.stop()
	}
	if r.err != nil || ctx.Err() != nil {
		return failed(ctx, "read source", r.err)
	}
	return nil
}

// stop ends the reading and waits for it. A panic of the source goes on here, in the
// caller's goroutine, where it can be recovered. It may be called twice.
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
		if r.cut {
			r.cancel() // Or the source would send all the rest.
		}
		if closing := r.rows.Close(); err == nil && !r.cut {
			err = closing
		}
	}()
	b := r.newBatch()
	var ends time.Time
	for !r.cut && r.rows.Next() {
		if ends.IsZero() {
			ends = time.Now().Add(r.by.lasts(ctx))
		}
		row := r.rows.Row()
		if !r.follow(row) {
			return ErrOutOfOrder
		}
		if r.isFull(b, row) {
			if !r.send(ctx, b) {
				return ctx.Err()
			}
			b = r.newBatch()
		}
		r.add(b, row)
		r.cut = !time.Now().Before(ends) && r.by.canCut(r, row) && !r.mostlyPoison(b.rows)
	}
	// Rows before a failure are as good as any.
	if len(b.rows) > 0 && !r.send(ctx, b) {
		return ctx.Err()
	}
	if r.cut {
		return nil
	}
	return r.rows.Err()
}

// position is a place in the order of timestamps, and of the keys of those that
// share one. key is empty where a read can only begin with the first of them, and
// order identifies the order of keys.
type position struct{ cursor, key, order string }

// hasMoved reports whether a read that begins with the last key leaves out rows of this one.
func (r *reader) hasMoved() bool { return r.lastKey != "" && r.lastKey != r.first }

// end is where the next read begins, if this one has ended before all rows were read.
func (r *reader) end() position { return r.at(r.last, r.lastKey) }

// at is the place of a row.
func (r *reader) at(cursor, key string) position {
	if r.order == "" || key == "" {
		return position{cursor: cursor}
	}
	return position{cursor, key, r.order}
}

func (r *reader) send(ctx context.Context, b *batch) bool {
	if !r.throttle(ctx, len(b.rows)) {
		return false
	}
	select {
	case r.batches <- b:
	default:
		r.prepare(b)
		select {
		case r.batches <- b:
		case <-ctx.Done():
			return false
		}
	}
	r.hurry.Store(false)
	return true
}

// prepare does what the comparison of rows will need, while the chunk before them is compared
// and committed.
func (r *reader) prepare(b *batch) {
	allNew := r.allNew.Load()
	for i := range b.rows {
		switch row := &b.rows[i]; {
		case allNew:
			row.identify(r.spec.Stream, r.epoch)
		case r.spec.Detect != DetectNew:
			row.hashData()
		}
	}
}

// throttle waits until the rate allows so many rows. Meanwhile no more are read.
func (r *reader) throttle(ctx context.Context, rows int) bool {
	if r.rate == nil {
		return true
	}
	// WaitN would give up at once if the deadline of ctx came first.
	held := r.rate.ReserveN(time.Now(), rows)
	if wait.For(ctx, held.Delay()) {
		return true
	}
	held.Cancel()
	return false
}

// follow counts a row, and reports whether it belongs behind the last. A poison row
// without a cursor counts as dated, because its timestamp may be what cannot be read:
// else a statement that its limit has ended would pass for a complete one.
func (r *reader) follow(row *Row) (ordered bool) {
	r.arrived.Add(1)
	dated := r.part == PartDated
	if dated && (row.Cursor != "" || row.Err != nil) {
		r.dated++
	}
	switch {
	case dated && row.Cursor == "":
		return true
	case !dated, row.Cursor == r.last:
		r.lastKey = cmp.Or(row.Key, r.lastKey)
		return true
	}
	ordered = r.src.Compare(r.last, row.Cursor) <= 0
	r.last, r.lastKey = row.Cursor, row.Key
	return ordered
}

func (r *reader) isFull(b *batch, row *Row) bool {
	return len(b.rows) > 0 &&
		(len(b.rows) >= r.spec.ChunkRows || b.bytes+len(row.Key)+len(row.Data) > r.spec.ChunkBytes || r.isWanted(b))
}

// isWanted reports whether a batch is waited for that is not full. One that would be
// refused for its poison rows is kept: a full chunk of a slow source may have as many
// poison rows as that of a fast one.
func (r *reader) isWanted(b *batch) bool {
	return r.hurry.Load() && r.hurry.Swap(false) && !r.mostlyPoison(b.rows)
}

func (r *reader) newBatch() *batch {
	select {
	case b := <-r.done:
		b.rows, b.keys, b.bytes = b.rows[:0], b.keys[:0], 0
		b.data.reset()
		return b
	default:
		return &batch{}
	}
}

// reuse takes back a batch whose chunk was committed, or carried.
func (r *reader) reuse(b *batch) {
	select {
	case r.done <- b:
	default:
	}
}

func (r *reader) add(b *batch, from *Row) {
	to := row{
		key:    from.Key,
		cursor: from.Cursor,
		time:   r.instant(from.Time),
		data:   b.data.copy(from.Data),
		asked:  from.Asked,
		err:    from.Err,
	}
	b.rows = append(b.rows, to)
	b.bytes += len(to.key) + len(to.data)
	b.keys = append(b.keys, to.key) // That of a poison row as well: it exists, so it is not gone.
}
