package admin

import (
	"strconv"
	"strings"
	"time"
)

// fraction is how much of the range from first to last lies below at, from 0 to 1;
// negative where the source's texts are neither numbers nor times.
func fraction(first, at, last string) float64 {
	from, ok1 := measure(first)
	now, ok2 := measure(at)
	to, ok3 := measure(last)
	if !ok1 || !ok2 || !ok3 || to <= from {
		return -1
	}
	return min(max((now-from)/(to-from), 0), 1)
}

// measure reads a cursor as a number: a number itself, or the seconds of a time. The
// zone does not matter because only differences count.
func measure(cursor string) (float64, bool) {
	if n, err := strconv.ParseFloat(cursor, 64); err == nil {
		return n, true
	}
	text := strings.Replace(cursor, "T", " ", 1)
	for _, form := range []string{"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z07", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			return float64(at.UnixMicro()) / 1e6, true
		}
	}
	return 0, false
}
