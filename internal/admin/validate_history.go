package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wiring"
)

const (
	// historyRows is how many rows of history are counted, historyTime for how long.
	historyRows = 100_000
	historyTime = 5 * time.Second
)

// History are the rows of a source that the first polls of an observer make events of.
type History struct {
	Rows int `json:"rows"`
	// AtLeast says that there may be more: not all were counted.
	AtLeast bool `json:"at_least"`
	// Text says so, and what leaves the rows out.
	Text string `json:"text"`
}

// countHistory counts the rows that a stream begins with. There is nothing to say of one
// that was polled already, as far as the coordination database can be asked. undated
// says that some rows may have no timestamp.
func (c *ObserverCheck) countHistory(ctx context.Context, src source.Database, op *Operator, undated bool) {
	o := c.observer
	now, at := o.StartAt()
	if now {
		return
	}
	cursor, err := op.cursor(ctx, c.ID)
	if cursor.Fingerprint != "" || err != nil {
		return // The check of the coordination database says what it lacks.
	}
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	h, err := history(ctx, src, o, at)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		h.AtLeast = true
	default:
		c.findings = append(c.findings, Finding{SeverityWarning, "observer " + c.ID, fmt.Sprintf("the rows of history cannot be counted: %v", err), nil})
		return
	}
	if h.Rows == 0 {
		return
	}
	h.say(o, at, undated)
	c.History = &h
}

// cursor returns the cursor of an observer; zero when it was never polled.
func (op *Operator) cursor(ctx context.Context, id string) (observer.Cursor, error) {
	store, err := op.peek(ctx, &DryRun{})
	if err != nil {
		return observer.Cursor{}, err
	}
	return store.Cursor(ctx, id)
}

// history reads the keys of the rows from a time on; zero means all, in any order.
func history(ctx context.Context, src source.Database, o config.Observer, at time.Time) (h History, err error) {
	var in observer.Range
	q := wiring.Query(o)
	q.Columns = q.Key
	switch {
	case q.NullTimestamp == observer.NullError:
		q.NullTimestamp = observer.NullSkip // They become no events.
	case q.NullTimestamp != observer.NullSkip && at.IsZero():
		q.Timestamp = "" // The order would cost the source a sort.
	}
	if q.Timestamp != "" {
		horizon, err := src.Horizon(ctx, q)
		if err != nil {
			return h, err
		}
		q.Form, in.Limit = horizon.Form, historyRows
	}
	if !at.IsZero() {
		if in.From, err = src.CursorAt(ctx, q, at); err != nil {
			return h, err
		}
	}
	rows, err := src.Read(ctx, q, in)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if rows.Row().Err == nil {
			h.Rows++
		}
		if h.Rows == historyRows {
			h.AtLeast = true
			return h, nil
		}
	}
	return h, rows.Err()
}

func (h *History) say(o config.Observer, at time.Time, undated bool) {
	rows := status.Plural(h.Rows, "row", "rows")
	if h.AtLeast {
		rows = "at least " + rows
	}
	h.Text = rows + " of history will become events"
	if !at.IsZero() {
		h.Text = fmt.Sprintf("%s of history, from the `start` on, will become events", rows)
	}
	switch {
	case o.Timestamp == "" || o.Detect == config.DetectSnapshot: // It reads all rows.
	case undated && o.NullTimestamp == string(observer.NullInclude):
		h.Text += "; `start: now` leaves out those that have a timestamp"
	default:
		h.Text += "; `start: now` leaves them out"
	}
}
