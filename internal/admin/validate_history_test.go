package admin

import (
	"context"
	"errors"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// brittle is a source whose rows end early, with an error.
type brittle struct {
	source.Database
	rows int
	end  func() error
}

func (b *brittle) Read(_ context.Context, q observer.Query, _ observer.Range) (observer.Rows, error) {
	if q.Timestamp != "" {
		return nil, errors.New("the rows are read in an order")
	}
	return &brittleRows{brittle: b}, nil
}

type brittleRows struct {
	observer.Rows
	*brittle
	err error
}

func (r *brittleRows) Next() bool {
	if r.rows == 0 {
		r.err = r.end()
		return false
	}
	r.rows--
	return true
}

func (r *brittleRows) Row() *observer.Row { return &observer.Row{Key: "k"} }
func (r *brittleRows) Err() error         { return r.err }
func (r *brittleRows) Close() error       { return nil }

// TestHistoryThatIsNotCountedToItsEnd has one whose time is over, and one that fails.
func TestHistoryThatIsNotCountedToItsEnd(t *testing.T) {
	t.Parallel()
	op := &Operator{cfg: &config.Config{}}
	o := config.Observer{ID: "a", Key: []string{"id"}, Timestamp: "at", Start: "beginning", NullTimestamp: "include"}
	for name, tc := range map[string]struct {
		rows       int
		late       bool
		text, warn string
	}{
		"late":           {rows: 2, late: true, text: "at least 2 rows of history will become events; `start: now` leaves them out"},
		"late, at once":  {late: true},
		"fails":          {rows: 2, warn: "the rows of history cannot be counted: broken"},
		"late, one row":  {rows: 1, late: true, text: "at least 1 row of history will become events; `start: now` leaves them out"},
		"more than many": {rows: historyRows + 1, text: "at least 100000 rows of history will become events; `start: now` leaves them out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := ObserverCheck{ID: o.ID, observer: o}
			c.countHistory(ctx, &brittle{rows: tc.rows, end: func() error {
				if tc.late {
					cancel()
					return context.Cause(ctx)
				}
				return errors.New("broken")
			}}, op, false)
			var text, warn string
			if c.History != nil {
				text = c.History.Text
			}
			for _, f := range c.findings {
				warn += f.Text
			}
			if text != tc.text || warn != tc.warn {
				t.Errorf("says %q, want %q; warns %q, want %q", text, tc.text, warn, tc.warn)
			}
		})
	}
}
