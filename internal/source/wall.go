package source

import "time"

// EarliestWall returns the earliest wall-clock reading that a clock in loc can
// still show from the instant t on, as a time in UTC with that reading.
//
// It is the reading at t, except shortly before the clocks go back: then rows
// will yet be written with readings from after the change, which are smaller.
func EarliestWall(t time.Time, loc *time.Location) time.Time {
	local := t.In(loc)
	wall := asUTC(local)
	_, end := local.ZoneBounds()
	if end.IsZero() {
		return wall
	}
	if after := asUTC(end.In(loc)); after.Before(wall) {
		return after
	}
	return wall
}

func asUTC(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.Add(time.Duration(offset) * time.Second).UTC()
}
