package app_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"
)

// TestBacklogIsWorkedOffTurnByTurn gives a poll less time than its backlog
// takes. It ends at its limit, that is no failure, and the next turn goes on.
func TestBacklogIsWorkedOffTurnByTurn(t *testing.T) {
	t.Parallel()
	const rows = 4_000
	p := setup(t, "")
	warehouse, err := sql.Open("sqlite", "file:"+filepath.Join(p.folder, "warehouse.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = warehouse.Close() }()
	if _, err := warehouse.ExecContext(t.Context(), `
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO orders (order_id, customer, status, total, updated_at)
		SELECT printf('BACKLOG-%06d', i), 'x', 'NEW', 1, '2026-01-01 00:00:00.000' FROM n`, rows); err != nil {
		t.Fatal(err)
	}
	orders := p.config.Observers[0]
	orders.PollTimeout, orders.ChunkSize = time.Second, 1
	p.config.Observers = p.config.Observers[:1]
	p.config.Observers[0] = orders

	ready(t, p.start(t))
	op := p.operator(t)
	limited := 0
	eventually(t, func() error {
		report, err := op.Report(t.Context())
		if err != nil {
			return err
		}
		for _, poll := range report.Polls {
			if poll.Outcome != "ok" {
				t.Fatalf("a poll that reached its limit ended as %s: %s", poll.Outcome, poll.Reason)
			}
			if poll.Events > 0 && poll.Events < rows {
				limited++
			}
		}
		return p.delivered(t, op, "orders", rows)()
	})
	if limited == 0 {
		t.Error("one poll did it all: the test proves nothing")
	}
}
