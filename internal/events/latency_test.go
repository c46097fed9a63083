package events_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
)

func TestLatency(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		event events.Event
		zone  *time.Location
		want  time.Duration
		ok    bool
	}{
		"a change":                     {events.Event{Time: now.Add(-time.Second), Change: events.ChangeChanged}, time.UTC, time.Second, true},
		"a clock ahead":                {events.Event{Time: now.Add(59 * time.Second)}, time.UTC, 0, true},
		"a due date":                   {events.Event{Time: now.Add(61 * time.Second)}, time.UTC, 0, false},
		"history":                      {events.Event{Time: now.Add(-time.Second), Snapshot: true}, time.UTC, 0, false},
		"a row that is gone":           {events.Event{Time: now.Add(-time.Second), Change: events.ChangeGone}, time.UTC, 0, false},
		"no time":                      {events.Event{}, time.UTC, 0, false},
		"a date":                       {events.Event{Time: now.Add(-12 * time.Hour)}, time.UTC, 0, false},
		"a date in Berlin":             {events.Event{Time: now.Add(-13 * time.Hour)}, berlin, 0, false},
		"midnight of another zone":     {events.Event{Time: now.Add(-12 * time.Hour)}, berlin, 12 * time.Hour, true},
		"a moment after midnight":      {events.Event{Time: now.Add(-12*time.Hour + time.Microsecond)}, time.UTC, 12*time.Hour - time.Microsecond, true},
		"new after it had disappeared": {events.Event{Time: now.Add(-time.Minute), Change: events.ChangeNew, Version: 3}, time.UTC, time.Minute, true},
	} {
		if got, ok := c.event.Latency(c.zone, now); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %t; want %v, %t", name, got, ok, c.want, c.ok)
		}
	}
}
