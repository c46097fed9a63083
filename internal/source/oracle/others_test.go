package oracle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/oracle/oratest/engine"
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
		"CREATE VIEW nested AS SELECT * FROM direct")
	s := d.open(oracle.Options{})
	for table, warning := range map[string]string{
		"app.events": "", "own": "", "distant": "database link", "further": "database link",
		"refreshed": "materialized view", "app.renamed": "materialized view",
	} {
		q := events()
		q.Table = table
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
	}
	// What is behind a view only its plan tells.
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
