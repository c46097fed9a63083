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
		return 0, fmt.Sprintf("%s is not a number of %s from %s to %s; write for example %s",
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
	return "this URL leads to another kind of server; write " + either(strings.Split(schemes, "|")) + "://HOST"
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
