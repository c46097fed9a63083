package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// A session shows up before it has a state, and before it can begin a
// transaction. It must not make the horizon a guess for that moment: the marks
// would go back by minutes. Where programs connect all the time, or all at once
// to a server that is back, a look in ten meets such a session.
func TestHorizonIgnoresSessionsThatStart(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	owner := connect(t, url)
	exec(t, owner, eventsTable)
	s := open(t, postgres.Options{URL: url})
	connectAllTheTime(t, url)
	// The looks of the horizon cannot be asked what they met; as many looks
	// between them can.
	const enough = 10
	limit := time.After(2 * time.Minute)
	for met := 0; met < enough; {
		if h := horizon(t, s, events()); !h.Exact {
			t.Fatalf("horizon = %+v beside sessions that start, want it exact", h)
		}
		met += countStarting(t, owner)
		select {
		case <-limit:
			t.Fatalf("only %d sessions without a state were met", met)
		default:
		}
	}
}

func countStarting(t *testing.T, owner *pgx.Conn) (n int) {
	t.Helper()
	err := owner.QueryRow(t.Context(), `
		SELECT count(*) FROM pg_stat_activity
		 WHERE datname = current_database() AND backend_type = 'client backend' AND state IS NULL`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// connectAllTheTime has programs connect and leave until the test ends.
func connectAllTheTime(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var programs sync.WaitGroup
	for range 4 {
		programs.Go(func() {
			for ctx.Err() == nil {
				conn, err := pgx.Connect(ctx, url)
				if err == nil {
					err = conn.Close(ctx)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		programs.Wait()
	})
}
