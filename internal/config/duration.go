package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// duration reads "1m30s", or a number of milliseconds.
func duration(text string, p place) (time.Duration, string) {
	d, err := parseDuration(text)
	least, _ := time.ParseDuration(p.tag.Get("min"))
	switch {
	case err != nil:
		return 0, quote(text) + " is not a duration; write for example 30s, 1m30s, 168h or 30000 (milliseconds)"
	case d < 0:
		return 0, quote(text) + " is negative; write " + short(-d)
	case d < least:
		return 0, fmt.Sprintf("%s is too short; write %s or more (a bare number is in milliseconds)", quote(text), short(least))
	}
	return d, ""
}

func parseDuration(text string) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.ParseDuration(text)
	}
	if n > math.MaxInt64/int64(time.Millisecond) || n < -math.MaxInt64/int64(time.Millisecond) {
		return 0, strconv.ErrRange
	}
	return time.Duration(n) * time.Millisecond, nil
}

// short prints a duration without zero parts: 1m, not 1m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
