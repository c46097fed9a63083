package wiring

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/test/kit/lockdbtest"
)

// TestHistoryOfAReplacedSourceStaysOut restores a source whose observer began at
// the present: what was there before that makes no events now either.
func TestHistoryOfAReplacedSourceStaysOut(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	db := lockdbtest.Open(t, log)
	src := observertest.NewSource()
	src.SetClock(100_000)
	src.SetIdentity("test:first")
	for i := range 50 {
		src.Put("old"+strconv.Itoa(i), "a")
	}
	src.Pass(60)
	p, err := NewPoller(config.Observer{
		ID: "orders", Event: "E", Detect: config.DetectNew, Table: "orders", Key: []string{"id"}, Timestamp: "at",
		ChunkSize: 10, MaxGone: 20, PollTimeout: time.Minute, Start: config.StartNow,
	}, Definition{}, src, db, log)
	if err != nil {
		t.Fatal(err)
	}
	poll := func(what string, want int64) {
		t.Helper()
		g, err := db.Leases().Acquire(t.Context(), lock.Request{Key: "order-observer-poll", Region: "DEFAULT", TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		stats, err := p.Poll(t.Context(), g)
		if err != nil || stats.Events != want {
			t.Errorf("%s: %d events, %v, want %d", what, stats.Events, err, want)
		}
		if err := db.Leases().Release(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	poll("at first", 0)
	src.Put("new", "a")
	poll("then", 1)
	src.SetIdentity("test:second")
	poll("of the database that has taken its place", 0)
	src.Put("newer", "a")
	poll("and later", 1)
}
