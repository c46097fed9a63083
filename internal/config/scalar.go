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
func (p Percent) String() string { return strconv.FormatFloat(float64(p), 'f', -1, 64) + "%" }

// setScalar sets a value from a text, within the limits of its key. why says what to write
// instead; "" means that it was set.
func setScalar(p place, text string) (why string) {
	switch target := p.value.Addr().Interface().(type) {
	case *string:
		*target, why = word(text, p)
	case *bool:
		*target, why = boolean(text)
	case *int:
		*target, why = number(text, p)
	case *time.Duration:
		*target, why = duration(text, p)
	case **time.Duration:
		*target = new(time.Duration)
		**target, why = duration(text, p)
	case *Percent:
		*target, why = percent(text)
	case *float64:
		*target, why = decimal(text, p)
	case encoding.TextUnmarshaler:
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
	for _, w := range words {
		if text == w {
			return text, ""
		}
	}
	if near := nearest.Name(text, words); near != "" {
		return "", fmt.Sprintf("%s is not %s; write %s", quote(text), either(words), near)
	}
	return "", fmt.Sprintf("%s is not a %s; write %s", quote(text), p.key, either(words))
}

func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func boolean(text string) (bool, string) {
	switch strings.ToLower(text) {
	case "true":
		return true, ""
	case "false":
		return false, ""
	}
	return false, quote(text) + " is not true or false; write one of them"
}

func number(text string, p place) (int, string) {
	low, high := limit(p, "min", 0), limit(p, "max", math.MaxInt32)
	n, err := strconv.Atoi(text)
	if err != nil || int64(n) < low || int64(n) > high {
		return 0, fmt.Sprintf("%s is not a number of %s from %d to %d; write for example %s",
			quote(text), p.unit(), low, high, p.tag.Get("default"))
	}
	return n, ""
}

func limit(p place, name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(p.tag.Get(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

func decimal(text string, p place) (float64, string) {
	low, high := bound(p, "min", 0), bound(p, "max", math.MaxInt32)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= low && n <= high) {
		return 0, fmt.Sprintf("%s is not a number of %s from %v to %v; write for example %s", quote(text), p.unit(), low, high, cmp.Or(p.tag.Get("default"), "1.5"))
	}
	return n, ""
}

func bound(p place, name string, otherwise float64) float64 {
	n, err := strconv.ParseFloat(p.tag.Get(name), 64)
	if err != nil {
		return otherwise
	}
	return n
}

// checkScheme says what to write in the place of a URL for another kind of server.
func checkScheme(p place) (why string) {
	u, ok := p.value.Interface().(field.URL)
	schemes := strings.Split(p.tag.Get("schemes"), "|")
	if !ok || p.tag.Get("schemes") == "" || slices.Contains(schemes, u.Scheme()) {
		return ""
	}
	for i, scheme := range schemes {
		schemes[i] = scheme + "://HOST"
	}
	return "this URL leads to another kind of server; write " + either(schemes)
}

func percent(text string) (Percent, string) {
	digits, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n > 0 && n <= 100) {
		return 0, quote(text) + " is not a percentage above 0% and up to 100%; write for example 20%"
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
