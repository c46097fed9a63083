package torture

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/test/suite/torture/audit"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// errNotDrained reports what is missing although all was healed.
var errNotDrained = errors.New("not everything was delivered once all was healed")

// row names a row of the source.
type row struct{ stream, key string }

// backlog is what was committed and not yet told.
type backlog struct {
	modes   map[string]history.Mode
	missing map[row]history.Write // the last version of each row
	// gone are the rows whose end a snapshot has to tell, once it has told of
	// them: true while it owes that.
	gone map[row]bool
	read map[string]int64 // the last event seen of each stream
}

// drain waits until the events tell the last state of each row, and the sink
// has them all: for as long as something arrives, however slow the machine is.
func (c *cluster) drain(ctx context.Context) (took time.Duration, err error) {
	began := time.Now()
	b, err := c.backlog(ctx)
	if err != nil {
		return 0, err
	}
	least, arrived := math.MaxInt, began
	for {
		rest, what, err := b.left(ctx, c.ledger)
		switch {
		case err != nil:
			return time.Since(began), fmt.Errorf("watch the event log: %w", err)
		case rest == 0:
			return time.Since(began), nil
		case rest < least:
			least, arrived = rest, time.Now()
		case time.Since(arrived) > c.options.Drain:
			return time.Since(began), fmt.Errorf("%w: nothing has arrived for %s, and %s", errNotDrained, c.options.Drain, what)
		}
		if !sleep(ctx, 300*time.Millisecond) {
			return time.Since(began), context.Cause(ctx)
		}
	}
}

func (c *cluster) backlog(ctx context.Context) (*backlog, error) {
	writes, err := c.writes(ctx)
	if err != nil {
		return nil, err
	}
	b := &backlog{modes: make(map[string]history.Mode), missing: make(map[row]history.Write), gone: make(map[row]bool), read: make(map[string]int64)}
	for _, s := range c.options.schedule() {
		b.modes[s.Name] = s.Mode
	}
	for _, w := range writes {
		r := row{w.Stream, w.Key}
		if w.N > b.missing[r].N {
			b.missing[r] = w
		}
	}
	for r, w := range b.missing {
		// A row that came and went between two polls leaves no event, and nobody
		// but a snapshot looks for what is gone.
		if w.Gone {
			delete(b.missing, r)
			if b.modes[r.stream] == history.ModeSnapshot {
				b.gone[r] = false
			}
		}
	}
	return b, nil
}

// left is how much is missing, and what; 0 when nothing is.
func (b *backlog) left(ctx context.Context, ledger *audit.DB) (rest int, what string, err error) {
	undelivered, err := b.followAll(ctx, ledger)
	if err != nil {
		return 0, "", err
	}
	owed := 0
	for r, owes := range b.gone {
		if !owes {
			continue
		}
		known, err := isObserved(ctx, ledger, r)
		if err != nil {
			return 0, "", err
		}
		if known {
			owed++
		}
	}
	what = fmt.Sprintf("%d rows and the end of %d are not told, %d events are not delivered", len(b.missing), owed, undelivered)
	return len(b.missing) + owed + undelivered, what, nil
}

// isObserved reports whether the row was met since its stream last forgot its rows: of others
// no snapshot knows that they are gone.
func isObserved(ctx context.Context, ledger *audit.DB, r row) (known bool, err error) {
	err = ledger.QueryRowContext(ctx, fmt.Sprintf(`
		SELECT count(*) > 0
		  FROM obs_observed o
		  JOIN obs_cursor c ON c.stream_id = o.stream_id
		 WHERE c.stream = '%s' AND o.key = '%s' AND NOT o.gone`, r.stream, r.key)).Scan(&known)
	return known, err
}

// followAll reads the new events of all streams, and counts those that the sink lacks.
func (b *backlog) followAll(ctx context.Context, ledger *audit.DB) (undelivered int, err error) {
	rows, err := ledger.QueryContext(ctx, `
		SELECT c.stream, c.last_seq, coalesce(o.last_seq, 0)
		  FROM obs_cursor c
		  LEFT JOIN obs_sink_offset o ON o.stream = c.stream AND o.sink = '`+sinkID+`'`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var grown []string
	for rows.Next() {
		var stream string
		var last, delivered int64
		if err := rows.Scan(&stream, &last, &delivered); err != nil {
			return 0, err
		}
		if last > b.read[stream] {
			grown = append(grown, stream)
		}
		undelivered += int(max(0, last-delivered))
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	for _, stream := range grown {
		if err := b.follow(ctx, ledger, stream, b.modes[stream]); err != nil {
			return 0, err
		}
	}
	return undelivered, nil
}

// follow reads the new events of a stream.
func (b *backlog) follow(ctx context.Context, ledger *audit.DB, stream string, mode history.Mode) error {
	rows, err := ledger.QueryContext(ctx, fmt.Sprintf(`
		SELECT seq, subject, change, coalesce(CAST(data ->> 'n' AS BIGINT), 0)
		  FROM obs_event
		 WHERE stream = '%s' AND seq > %d
		 ORDER BY seq`, stream, b.read[stream]))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq, n int64
		var subject, change string
		if err := rows.Scan(&seq, &subject, &change, &n); err != nil {
			return err
		}
		b.read[stream] = seq
		r := row{stream, subject}
		if _, ok := b.gone[r]; ok {
			b.gone[r] = change != string(events.ChangeGone)
		}
		if w, ok := b.missing[r]; ok && (mode == history.ModeNew || n >= w.N) {
			delete(b.missing, r)
		}
	}
	return rows.Err()
}
