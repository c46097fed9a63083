package config_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
)

// TestWindow compares windows with a calendar, over midnight and on days that clocks
// make 23 and 25 hours long.
func TestWindow(t *testing.T) {
	t.Parallel()
	const outside = ""
	for _, c := range []struct{ name, window, now, until string }{
		{"before", "22:00-06:00 Europe/Berlin", "2026-01-13T20:59:59Z", outside},
		{"its beginning", "22:00-06:00 Europe/Berlin", "2026-01-13T21:00:00Z", "2026-01-14T05:00:00Z"},
		{"after midnight", "22:00-06:00 Europe/Berlin", "2026-01-14T04:59:59.999Z", "2026-01-14T05:00:00Z"},
		{"its end", "22:00-06:00 Europe/Berlin", "2026-01-14T05:00:00Z", outside},
		{"in summer", "22:00-06:00 Europe/Berlin", "2026-07-13T20:00:00Z", "2026-07-14T04:00:00Z"},
		{"within a day", "12:30-13:15 America/New_York", "2026-01-13T17:30:30Z", "2026-01-13T18:15:00Z"},
		{"until midnight", "22:00-00:00 UTC", "2026-01-13T23:59:00Z", "2026-01-14T00:00:00Z"},
		{"from midnight", "00:00-01:00 UTC", "2026-01-13T00:00:00Z", "2026-01-13T01:00:00Z"},
		{"half an hour's zone", "22:00-06:00 Asia/Kolkata", "2026-01-13T16:30:00Z", "2026-01-14T00:30:00Z"},

		// On 29 March 2026 the clocks of Berlin skip from 2:00 to 3:00, which is 01:00 UTC.
		{"a night of 7 hours", "22:00-06:00 Europe/Berlin", "2026-03-28T21:00:00Z", "2026-03-29T04:00:00Z"},
		{"an end that is skipped", "22:00-02:30 Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"},
		{"a beginning that is skipped", "02:30-04:00 Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		{"before a beginning that is skipped", "02:30-04:00 Europe/Berlin", "2026-03-29T00:59:59Z", outside},
		{"one that is skipped", "02:10-02:50 Europe/Berlin", "2026-03-29T01:00:00Z", outside},

		// On 25 October 2026 they show 2:00 to 3:00 twice, from 00:00 UTC on.
		{"a night of 9 hours", "22:00-06:00 Europe/Berlin", "2026-10-24T20:00:00Z", "2026-10-25T05:00:00Z"},
		{"an end the first time", "22:00-02:30 Europe/Berlin", "2026-10-25T00:29:00Z", "2026-10-25T00:30:00Z"},
		{"between both", "22:00-02:30 Europe/Berlin", "2026-10-25T00:45:00Z", outside},
		{"an end the second time", "22:00-02:30 Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-25T01:30:00Z"},
		{"from the first to the second", "02:30-02:00 Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T01:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now, err := time.Parse(time.RFC3339Nano, c.now)
			if err != nil {
				t.Fatal(err)
			}
			end, within := config.Observer{NotBetween: c.window}.Window().Until(now)
			got := outside
			if within {
				got = end.Format(time.RFC3339Nano)
			}
			if got != c.until {
				t.Errorf("until %q, want %q", got, c.until)
			}
		})
	}
	if _, within := (config.Observer{}).Window().Until(time.Now()); within {
		t.Error("no window contains the present")
	}
}
