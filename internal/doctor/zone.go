package doctor

import (
	"fmt"
	"strings"
	"time"
)

// zone recognises an offset that a time zone makes. A row is seen some time
// after it was written, so the clock of its writer was ahead by seen to seen +
// late. Zones are multiples of a quarter of an hour, from 30 minutes to 14
// hours; chance makes one in every 15 minutes / late look so.
func zone(seen, late time.Duration) (time.Duration, bool) {
	const quarter, jitter = 15 * time.Minute, 2 * time.Second
	z := (seen - jitter).Truncate(quarter)
	if z < seen-jitter {
		z += quarter
	}
	return z, z <= seen+late+jitter && z.Abs() >= 2*quarter && z.Abs() <= 14*time.Hour
}

// words writes a duration as a person would: without units that are zero.
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

// direction words how one clock stands to another.
func direction(ahead time.Duration) string {
	if ahead < 0 {
		return words(-ahead) + " behind"
	}
	return words(ahead) + " ahead of"
}

// signed writes an offset with its sign, as zones are written.
func signed(d time.Duration) string {
	if d < 0 {
		return "-" + words(-d)
	}
	return "+" + words(d)
}

// watched words how long INT_LOCK was looked at.
func (x *patient) watched() string {
	if x.Watched < x.Every {
		return "in one look"
	}
	return "in " + words(x.Watched.Round(time.Second))
}
