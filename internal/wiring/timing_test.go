package wiring_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/internal/wiring"
)

// TestNextPoll asks for observers of a configuration; how it is found out is tested in
// package schedule.
func TestNextPoll(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{
		Scheduler: config.Scheduler{
			Shared: config.Shared{Spread: 4 * time.Second},
			Types: map[string]config.Settings{
				"order": {Enabled: true, FixedDelay: 30 * time.Second, NotBetween: "22:00-06:00 Europe/Berlin"},
				"wes":   {Enabled: true, FixedDelay: 30 * time.Second},
			},
		},
		Observers: []config.Observer{
			{ID: "each", Type: "order", Enabled: true},
			{ID: "third", Type: "order", Enabled: true, FixedDelay: 90 * time.Second},
			{ID: "off", Type: "wes", NotBetween: "12:00-13:00 UTC"},
			{ID: "tasks", Type: "wes", Enabled: true},
		},
	}
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.DateTime, "2026-01-13 "+text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for i, want := range []struct {
		now, turn, next string
		interval        time.Duration
	}{
		{"12:00:10", "12:00:00", "12:00:30", 30 * time.Second},
		{"12:00:10", "12:00:00", "12:01:30", 90 * time.Second},
		{"12:00:10", "11:00:00", "13:00:02", 30 * time.Second},
		{"12:00:10", "12:00:00", "12:00:32", 30 * time.Second},
	} {
		next, interval := wiring.NextPoll(cfg, cfg.Types(), cfg.Observers[i], turn.Stream{At: at(want.turn)}, at(want.now))
		if !next.Equal(at(want.next)) || interval != want.interval {
			t.Errorf("%s: next %s, interval %s", cfg.Observers[i].ID, next, interval)
		}
	}
	if next, _ := wiring.NextPoll(cfg, cfg.Types(), cfg.Observers[0], turn.Stream{At: at("20:59:30")}, at("20:59:40")); !next.Equal(at("00:00:00").AddDate(0, 0, 1).Add(5 * time.Hour)) {
		t.Errorf("at night: next %s", next)
	}
}
