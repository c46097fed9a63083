package postgres

import (
	"testing"
	"time"
)

// What takes a replica, a two-phase transaction or a night in October is
// checked on the arithmetic alone.
func TestActivityHorizon(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2024, 10, 27, 0, 30, 0, 0, time.UTC) // 02:30 in Berlin, for the first time
	sound := activity{now: now, tracking: true}
	replica := activity{now: now, tracking: true, replica: true, replayed: now.Add(-time.Hour)}
	prepared := activity{now: now, tracking: true, prepared: now.Add(-time.Hour)}
	open := now.Add(-time.Hour)
	fresh := activity{now: now, tracking: true, replica: true}
	for name, test := range map[string]struct {
		activity activity
		overlap  time.Duration
		kind     timeKind
		want     string
		lag      time.Duration
		exact    bool
	}{
		"nothing open":               {sound, 0, timeUTC, "2024-10-27 00:29:59.000000", time.Second, true},
		"hidden sessions":            {activity{now: now, tracking: true, hidden: 1}, 0, timeUTC, "2024-10-27 00:29:00.000000", time.Minute, false},
		"tracking is off":            {activity{now: now}, 0, timeUTC, "2024-10-27 00:29:00.000000", time.Minute, false},
		"hidden, beside a seen one":  {activity{now: now, tracking: true, hidden: 1, oldest: open}, 0, timeUTC, "2024-10-26 23:29:59.000000", time.Hour + time.Second, false},
		"a report on a replica":      {activity{now: now, tracking: true, replica: true, replayed: now, oldest: open}, 0, timeUTC, "2024-10-27 00:29:00.000000", time.Minute, false},
		"a foreign table":            {activity{now: now, tracking: true, others: others{foreign: "public.orders"}}, 0, timeUTC, "2024-10-27 00:29:00.000000", time.Minute, false},
		"replica":                    {replica, time.Minute, timeUTC, "2024-10-26 23:29:00.000000", time.Hour + time.Minute, false},
		"replica without replay":     {fresh, time.Minute, timeUTC, "", time.Minute, false},
		"prepared transaction":       {prepared, 0, timeUTC, "", time.Hour, true},
		"wall clock before the fold": {sound, 0, timeWall, "2024-10-27 02:00:00.000000", time.Second, true},
		"date":                       {sound, 0, timeDate, "2024-10-27", time.Second, true},
	} {
		h := test.activity.horizon(test.overlap, test.kind, berlin)
		if h.Cursor != test.want || h.Lag != test.lag || h.Exact != test.exact {
			t.Errorf("%s: horizon = %+v, want %q, %s, %t", name, h, test.want, test.lag, test.exact)
		}
	}
}
