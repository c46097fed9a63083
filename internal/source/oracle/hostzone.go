package oracle

import (
	"sync"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// change is by how much clocks are changed twice a year.
const change = time.Hour

// changing are zones whose clocks are changed, one for each set of rules. The
// database does not name the zone of its host; only its present offset shows.
var changing = sync.OnceValue(func() []*time.Location {
	var zones []*time.Location
	for _, name := range []string{
		"Europe/London", "Europe/Berlin", "Europe/Athens", "Europe/Chisinau", "Africa/Cairo", "Africa/Casablanca",
		"Asia/Jerusalem", "Asia/Gaza", "Asia/Beirut", "Antarctica/Troll", "Atlantic/Azores",
		"America/Nuuk", "America/Miquelon", "America/St_Johns", "America/Halifax", "America/New_York", "America/Chicago",
		"America/Denver", "America/Los_Angeles", "America/Anchorage", "America/Adak", "America/Havana",
		"America/Asuncion", "America/Santiago", "Pacific/Easter",
		"Australia/Sydney", "Australia/Adelaide", "Australia/Lord_Howe", "Pacific/Norfolk", "Pacific/Auckland", "Pacific/Chatham",
	} {
		if zone, err := time.LoadLocation(name); err == nil {
			zones = append(zones, zone)
		}
	}
	return zones
})

// started is when the oldest transaction began, as an instant; zero when nothing
// is open, and where the host's clock makes no sense. Its wall clock may be from
// before the clocks went back: of all zones that the host may keep, the
// configured one among them, the earliest reading counts.
func (a activity) started(loc *time.Location) time.Time {
	offset, sound := a.offset()
	if a.oldest.IsZero() || !sound {
		return time.Time{}
	}
	at := a.oldest.Add(-offset)
	earliest := at
	for _, host := range append([]*time.Location{loc}, changing()...) {
		if _, present := a.now.In(host).Zone(); time.Duration(present)*time.Second == offset {
			earliest = source.Earlier(earliest, earliestOf(a.oldest, at, host))
		}
	}
	return earliest
}

// earliestOf returns the earliest instant at which clocks in loc showed that
// reading; guess is where it would be by the present offset.
func earliestOf(reading, guess time.Time, loc *time.Location) time.Time {
	for _, around := range []time.Time{guess.Add(-3 * change), guess, guess.Add(3 * change)} {
		_, offset := around.In(loc).Zone()
		at := reading.Add(-time.Duration(offset) * time.Second)
		if _, then := at.In(loc).Zone(); then == offset {
			return at
		}
	}
	return guess.Add(-change) // a reading that no clock has shown
}
