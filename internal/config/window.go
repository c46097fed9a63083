package config

import (
	"cmp"
	_ "embed"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/nearest"
)

const day = 24 * time.Hour

// Window is a time of day in which no poll begins. It goes by the clock on the wall of
// its zone: it lasts an hour longer or less where the clocks are changed within it, and
// an hour that they show twice counts both times.
type Window struct {
	from, to time.Duration // since midnight; to is less over midnight
	zone     *time.Location
}

// windowForm is how a window is written.
const windowForm = "HH:MM-HH:MM and a time zone, such as 22:00-06:00 Europe/Berlin"

// parseWindow reads "22:00-06:00 Europe/Berlin"; empty is no window. why says what to
// write instead.
func parseWindow(text string) (w *Window, why string) {
	if text == "" {
		return nil, ""
	}
	times, name, zoned := strings.Cut(text, " ")
	first, last, _ := strings.Cut(times, "-")
	from, ok := timeOfDay(first)
	to, alsoOK := timeOfDay(last)
	switch {
	case !ok || !alsoOK:
		return nil, quote(text) + " is not a time of day from one time to another; use " + windowForm
	case !zoned:
		return nil, quote(text) + " names no time zone; add it after the times, such as " + times + " Europe/Berlin"
	case from == to:
		return nil, quote(text) + " begins and ends at one time; set two times, or enabled: false for no poll at all"
	}
	zone, why := parseZone(name)
	return &Window{from, to, zone}, why
}

// timeOfDay reads HH:MM as the time since midnight.
func timeOfDay(text string) (time.Duration, bool) {
	at, err := time.Parse(clockForm, text)
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, err == nil && len(text) == len(clockForm)
}

// parseZone returns the IANA time zone of that name. why says what to write instead.
func parseZone(name string) (zone *time.Location, why string) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, quote(name) + " is not an IANA time zone; use " + cmp.Or(nearestZone(name), "for example UTC or Europe/Berlin")
	}
	return zone, ""
}

// mustWindow returns a window that [Load] has checked.
func mustWindow(text string) *Window {
	w, why := parseWindow(text)
	if why != "" {
		return nil
	}
	return w
}

// Longest returns how long the window lasts, with an hour by which clocks may be changed.
func (w *Window) Longest() time.Duration {
	if w == nil {
		return 0
	}
	return (w.to-w.from+day)%day + time.Hour
}

// Until reports whether the time is in the window, and when that ends. Nil contains no
// time.
func (w *Window) Until(now time.Time) (end time.Time, within bool) {
	if w == nil {
		return now, false
	}
	end = now.In(w.zone)
	for w.shown(end) {
		within = true
		next := end.Add((w.to - sinceMidnight(end) + day) % day)
		if _, change := end.ZoneBounds(); !change.IsZero() && change.Before(next) {
			next = change // What the clock shows then, the next round says.
		}
		end = next
	}
	return end.UTC(), within
}

// shown reports whether the clock on the wall shows a time of the window.
func (w *Window) shown(at time.Time) bool {
	t := sinceMidnight(at)
	if w.from < w.to {
		return w.from <= t && t < w.to
	}
	return t >= w.from || t < w.to
}

// sinceMidnight is what the clock on the wall shows.
func sinceMidnight(t time.Time) time.Duration {
	h, m, s := t.Clock()
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second + time.Duration(t.Nanosecond())
}

// longestOpen returns the longest time of a day that lies outside of all the windows, to
// the minute, on a day without a change of clocks.
func longestOpen(windows ...*Window) time.Duration {
	began := time.Date(2026, time.January, 13, 0, 0, 0, 0, time.UTC)
	var longest, open time.Duration
	for at := began; at.Before(began.Add(2 * day)); at = at.Add(time.Minute) {
		open += time.Minute
		for _, w := range windows {
			if _, within := w.Until(at); within {
				open = 0
			}
		}
		longest = max(longest, open)
	}
	return longest
}

// zoneNames are the zones of zone.tab in the IANA time zone database and UTC, one a line,
// each with a city of its own; package time does not list them.
//
//go:embed zones.txt
var zoneNames string

// nearestZone returns the zone that was probably meant, or "". The city decides: names
// of one region are alike to a large part.
func nearestZone(name string) string {
	zones := make(map[string]string)
	for zone := range strings.Lines(zoneNames) {
		zone = strings.TrimSpace(zone)
		zones[path.Base(zone)] = zone
	}
	city := nearest.Name(path.Base(name), slices.Sorted(maps.Keys(zones)))
	if len(name) < len("Paris") && !strings.EqualFold(city, name) { // MSK is not Asia/Omsk.
		return ""
	}
	return zones[city]
}
