package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var days = regexp.MustCompile(`^(\d{1,5})\s*(d|day|days)$`)

// duration reads "1m30s", or a number of milliseconds.
func duration(text string, f field) (time.Duration, string) {
	d, err := parseDuration(text)
	least, _ := time.ParseDuration(f.tag.Get("min"))
	switch {
	case err != nil:
		return 0, quote(text) + " is not a duration; write " + better(text)
	case d < 0:
		return 0, quote(text) + " is negative; write " + better(strings.TrimPrefix(text, "-"))
	case d < least:
		return 0, fmt.Sprintf("%s is too short; write %s or more%s", quote(text), short(least), milliseconds(text))
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

// better is the duration that was probably meant.
func better(text string) string {
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return strconv.Itoa(24*n) + "h"
	}
	if d, err := parseDuration(text); err == nil && d > 0 {
		return short(d)
	}
	return "for example 30s, 1m30s or 30000 (milliseconds)"
}

// milliseconds reminds of the unit of a bare number, which is easily taken for
// seconds.
func milliseconds(text string) string {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil && text != "0" {
		return " (a bare number is in milliseconds)"
	}
	return ""
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
