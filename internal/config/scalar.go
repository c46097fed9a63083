package config

import (
	"cmp"
	"encoding"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/nearest"
)

// Percent is a part of a whole; 20 is a fifth.
type Percent float64

// String is "20%".
func (p Percent) String() string { return decimal(float64(p)) + "%" }

// setScalar sets a value from a text, within the limits of its key. why says what to write
// instead; "" means that it was set.
func setScalar(p place, text string) (why string) {
	switch target := p.value.Addr().Interface().(type) {
	case *string:
		*target, why = word(text, p)
	case *bool:
		*target, why = boolean(text)
	case *int:
		var n float64
		n, why = number(text, p, true)
		*target = int(n)
	case *time.Duration:
		*target, why = duration(text, p)
	case **time.Duration:
		*target = new(time.Duration)
		**target, why = duration(text, p)
	case *Percent:
		*target, why = percent(text)
	case *float64:
		*target, why = number(text, p, false)
	case encoding.TextUnmarshaler:
		if _, why = word(text, p); why != "" {
			return why
		}
		if err := target.UnmarshalText([]byte(text)); err != nil {
			return err.Error()
		}
		return checkScheme(p)
	default:
		panic("config: no way to read a " + p.value.Type().String())
	}
	return why
}

func word(text string, p place) (string, string) {
	accepted := p.tag.Get("oneof")
	if accepted == "" {
		return text, ""
	}
	words := strings.Split(accepted, "|")
	if slices.Contains(words, text) {
		return text, ""
	}
	if near := nearest.Name(text, words); near != "" {
		return "", fmt.Sprintf("%s is not %s; use %s", quote(text), nearest.Either(words), near)
	}
	return "", fmt.Sprintf("unknown value %s; use %s", quote(text), nearest.Either(words))
}

func boolean(text string) (bool, string) {
	switch strings.ToLower(text) {
	case "true":
		return true, ""
	case "false":
		return false, ""
	}
	return false, quote(text) + " is not true or false; use one of them"
}

// number reads a whole number, or a fraction where the value may be one.
func number(text string, p place, whole bool) (n float64, why string) {
	low, high := limit(p, "min", 0), limit(p, "max", math.MaxInt32)
	n, err := strconv.ParseFloat(text, 64)
	if whole {
		var i int
		i, err = strconv.Atoi(text)
		n = float64(i)
	}
	if err != nil || !(n >= low && n <= high) { // NaN is neither.
		return 0, fmt.Sprintf("%s is not a number of %s from %s to %s; use for example %s",
			quote(text), p.unit(), decimal(low), decimal(high), cmp.Or(p.tag.Get("default"), decimal(low)))
	}
	return n, ""
}

func limit(p place, name string, otherwise float64) float64 {
	n, err := strconv.ParseFloat(p.tag.Get(name), 64)
	if err != nil {
		return otherwise
	}
	return n
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// checkScheme says what to write in the place of a URL for another kind of server.
func checkScheme(p place) (why string) {
	schemes := p.tag.Get("schemes")
	if u, ok := p.value.Interface().(field.URL); !ok || schemes == "" || slices.Contains(strings.Split(schemes, "|"), u.Scheme) {
		return ""
	}
	return "this URL leads to another kind of server; use " + nearest.Either(strings.Split(schemes, "|")) + "://HOST"
}

func percent(text string) (Percent, string) {
	digits, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n > 0 && n <= 100) {
		return 0, quote(text) + " is not a percentage above 0% and up to 100%; use for example 20%"
	}
	return Percent(n), ""
}

// quote repeats a value in a message, shortened. What may be a URL in the wrong
// place is not repeated.
func quote(text string) string {
	const most = 40
	if strings.Contains(text, "://") || strings.Contains(text, "@") {
		return "(not shown)"
	}
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return strconv.Quote(text)
}

// duration reads "1m30s", or a number of milliseconds.
func duration(text string, p place) (time.Duration, string) {
	d, err := parseDuration(text)
	least, _ := time.ParseDuration(p.tag.Get("min"))
	switch {
	case err != nil:
		return 0, quote(text) + " is not a duration; use for example 30s, 1m30s, 168h or 30000 (milliseconds)"
	case d < 0:
		return 0, quote(text) + " is negative; use " + short(-d)
	case d < least:
		return 0, fmt.Sprintf("%s is too short; use %s or more (a bare number is in milliseconds)", quote(text), short(least))
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
