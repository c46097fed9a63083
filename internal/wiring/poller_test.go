package wiring

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/slowsource"
)

// TestPollThatReachesItsLimit shows that a poll which got on before its time
// was over is no failure, and that one which did not is.
func TestPollThatReachesItsLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rows int
		want error
	}{"with progress": {2, nil}, "without": {0, observer.ErrPollTime}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { pollToItsLimit(t, tc.rows, tc.want) })
		})
	}
}

func pollToItsLimit(t *testing.T, rows int, want error) {
	log := slog.New(slog.DiscardHandler)
	db := lockdbtest.Open(t, log)
	g, err := db.Leases().Acquire(t.Context(), lock.Request{Key: "order-observer-poll", Region: "DEFAULT", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPoller(config.Observer{
		ID: "orders", Event: "E", Detect: config.DetectNew, Table: "orders", Key: []string{"id"}, Timestamp: "at",
		ChunkSize: 1, MaxGone: 20, PollTimeout: 2 * time.Second,
	}, Definition{}, slowsource.Source{Rows: rows}, db, log)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := p.Poll(t.Context(), g)
	if !errors.Is(err, want) || (want == nil && err != nil) {
		t.Errorf("the poll ended with %v, want %v", err, want)
	}
	if (stats.Events > 0) != (rows > 0) {
		t.Errorf("%d events of %d rows", stats.Events, rows)
	}
}

// TestHorizonIsToldOnce has two times in which it stands still, of several polls.
func TestHorizonIsToldOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Poller{id: "orders", maxLookback: time.Hour, log: slog.New(slog.NewTextHandler(&out, nil))}
	for _, lag := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, time.Minute, time.Minute, 2 * time.Hour} {
		p.noteHorizon(lag)
	}
	still, moves := strings.Count(out.String(), "Horizon does not move"), strings.Count(out.String(), "Horizon moves again")
	if still != 2 || moves != 1 || !strings.Contains(out.String(), "lag=2h0m0s max_lookback=1h0m0s") {
		t.Errorf("the log is\n%s", &out)
	}
}
