package doctor

import (
	"fmt"
	"time"
)

// words returns a duration for people.
func words(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d.Round(24*time.Hour)/(24*time.Hour))
	case d >= 10*time.Minute: // A row is seen some seconds after it was written.
		return d.Round(time.Minute).String()
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// direction returns how far one clock is ahead of or behind another.
func direction(ahead time.Duration) string {
	if ahead < 0 {
		return words(-ahead) + " behind"
	}
	return words(ahead) + " ahead of"
}

// watched returns for how long INT_LOCK was watched.
func (x *input) watched() string {
	if x.Watched < x.Every {
		return "in one look"
	}
	return "in " + words(x.Watched.Round(time.Second))
}
