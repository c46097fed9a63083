package oracle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// Transactions that cannot be seen bring what is read over a link, and a refresh
// shows late what a materialized view holds.
func TestHorizonOfWhatOthersBring(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	d.exec(eventsTable,
		"CREATE SYNONYM own FOR events",
		"CREATE SYNONYM distant FOR events@elsewhere",
		"CREATE SYNONYM further FOR distant",
		"CREATE MATERIALIZED VIEW refreshed AS SELECT * FROM events",
		"CREATE SYNONYM renamed FOR refreshed",
		"CREATE VIEW direct AS SELECT * FROM refreshed",
		"CREATE VIEW nested AS SELECT * FROM direct",
		"CREATE VIEW plain AS SELECT * FROM events",
		"CREATE SYNONYM viewed FOR nested")
	s := d.open(oracle.Options{})
	const unknown = "not looked up"
	for table, warning := range map[string]string{
		"app.events": "", "own": "", "distant": "database link", "further": "database link",
		"refreshed": "materialized view", "app.renamed": "materialized view",
		"direct": unknown, "nested": unknown, "viewed": unknown, "plain": unknown,
		"SELECT id, at FROM nested": unknown, "SELECT id, at FROM events": unknown,
	} {
		q := events()
		q.Table = table
		if strings.HasPrefix(table, "SELECT") {
			q.Table, q.SQL = "", table
		}
		for range 2 { // looked up, and remembered
			h := horizon(t, s, q)
			if h.Exact != (warning == "") || !h.Exact && h.Lag < time.Minute {
				t.Errorf("horizon of %s = %+v", table, h)
			}
		}
		described, err := s.Describe(t.Context(), q)
		text := strings.Join(described.Warnings, "\n")
		if err != nil || described.HorizonExact != (warning == "") || (text == "") != (warning == "") || !strings.Contains(text, warning) {
			t.Errorf("description of %s = %+v, %v, want a warning of %q", table, described, err, warning)
		}
		q.Overlap = 5 * time.Second
		described, err = s.Describe(t.Context(), q)
		if err != nil || described.HorizonExact != (warning == "") || len(described.Warnings) > 0 {
			t.Errorf("description of %s with an overlap = %+v, %v", table, described, err)
		}
	}
	// What is behind a view only its plan tells, as far as it does.
	for table, warning := range map[string]string{"app.events": "[]", "refreshed": "[]", "nested": "materialized view"} {
		q := events()
		q.Table = table
		if p, err := s.Plan(t.Context(), q, observer.Range{}); err != nil || !strings.Contains(fmt.Sprint(p.Warnings), warning) {
			t.Errorf("plan of %s = %+v, %v, want a warning of %q", table, p, err, warning)
		}
		q.Overlap = time.Hour
		if p, err := s.Plan(t.Context(), q, observer.Range{}); err != nil || len(p.Warnings) > 0 {
			t.Errorf("plan of %s with an overlap = %+v, %v", table, p, err)
		}
	}
}

// A view waits for the open transactions of this database as a table does, so an
// overlap of the margin is enough for one that reads nothing else.
func TestHorizonOfAView(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Date(2024, 7, 1, 10, 0, 0, 0, time.UTC)}
	d := emulate(t, engine.Options{Now: clock.now})
	d.exec(eventsTable, "CREATE VIEW plain AS SELECT * FROM events")
	s := d.open(oracle.Options{})
	q := events()
	q.Table, q.Overlap = "plain", 5*time.Second
	if h := horizon(t, s, q); h.Exact || h.Lag != q.Overlap {
		t.Errorf("nothing open: %+v", h)
	}
	exec, commit := d.begin()
	exec("INSERT INTO events VALUES (1, SYSTIMESTAMP)")
	clock.set(clock.now().Add(10 * time.Minute))
	if h := horizon(t, s, q); h.Exact || h.Cursor != "2024-07-01 09:59:55.000000000" {
		t.Errorf("beside a transaction: %+v", h)
	}
	commit()
	if h := horizon(t, s, q); h.Lag != q.Overlap {
		t.Errorf("after it: %+v", h)
	}
}
