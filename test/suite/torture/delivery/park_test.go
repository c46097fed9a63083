//go:build nightly

package delivery

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// refusing is a database that at times refuses some keys, whose events are parked.
type refusing struct{ *database }

func (r refusing) entry(way *netfault.Proxy) string {
	return strings.Replace(r.database.entry(way), "create: true", "create: true, on-poison: park", 1)
}

// refuse reports whether the database has heard that it is to refuse keys, or none.
func (r refusing) refuse(t *testing.T, yes bool) bool {
	statements := []string{"SET lock_timeout = '2s'", "ALTER TABLE obs_feed_event DROP CONSTRAINT IF EXISTS good"}
	if yes {
		statements = append(statements, "ALTER TABLE obs_feed_event ADD CONSTRAINT good CHECK (right(subject, 1) <> '7') NOT VALID")
	}
	return pgtest.Execute(t.Context(), r.pg.URL("inbox"), statements...) == nil
}

// Events that were parked while faults strike come when they are retried, each once, and
// those of their key behind them.
func TestParkedEventsUnderAllFaults(t *testing.T) {
	r := refusing{newDatabase(t)}
	w := newWorld(t, r)
	parked := func() int64 { return query(w, pgx.RowTo[int64], "SELECT count(*) FROM obs_parked")[0] }
	// It may find no relay, or events that are parked again.
	retry := func() { _ = w.operate("dead", "retry", "--sink", sinkID, "--timeout", "5s") }
	w.run(func() {
		w.while(func() {
			done := make(chan struct{})
			var moody sync.WaitGroup
			moody.Go(func() {
				for yes := true; ; yes = !yes {
					select {
					case <-done:
						return
					case <-time.After(6 * time.Second):
						if r.refuse(t, yes) && !yes {
							retry()
						}
					}
				}
			})
			w.torture(tortureTime())
			close(done)
			moody.Wait()
			if !w.wait("parked events", patience, func() bool { return r.refuse(t, true) && parked() > 0 }) {
				t.Fatal("nothing is parked")
			}
		})
		if !w.wait("the last parked event", patience, func() bool {
			if r.refuse(t, false) {
				retry()
			}
			return parked() == 0
		}) {
			t.Fatalf("%d events are still parked", parked())
		}
	})
	w.drain(retry)
	if n := parked(); n > 0 {
		t.Errorf("%d events are still parked", n)
	}
	w.judge("under faults, with parked events", nil, byKey, onceByID)
}
