package doctor

import (
	"fmt"
	"strings"
	"time"
)

// zone reports whether an offset looks like a time zone, and which. A row is seen some
// time after it was written, so the clock of its writer was ahead by seen to seen +
// late. Zones are multiples of a quarter of an hour, from 30 minutes to 14 hours; by
// chance late / 15 minutes of all offsets look like one.
func zone(seen, late time.Duration) (time.Duration, bool) {
	const quarter, jitter = 15 * time.Minute, 2 * time.Second
	z := (seen - jitter).Truncate(quarter)
	if z < seen-jitter {
		z += quarter
	}
	return z, z <= seen+late+jitter && z.Abs() >= 2*quarter && z.Abs() <= 14*time.Hour
}

// words returns a duration for people: without units that are zero.
func words(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	if days := d.Round(24*time.Hour) / (24 * time.Hour); d >= 47*time.Hour {
		return fmt.Sprintf("%d days", days)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// direction returns how far one clock is ahead of or behind another.
func direction(ahead time.Duration) string {
	if ahead < 0 {
		return words(-ahead) + " behind"
	}
	return words(ahead) + " ahead of"
}

// signed returns an offset with its sign, as zones are written.
func signed(d time.Duration) string {
	if d < 0 {
		return "-" + words(-d)
	}
	return "+" + words(d)
}

// watched returns for how long INT_LOCK was watched.
func (x *input) watched() string {
	if x.Watched < x.Every {
		return "in one look"
	}
	return "in " + words(x.Watched.Round(time.Second))
}
