package engine

import (
	"slices"
	"strings"
	"sync"
)

// element is one piece of a date format: a field, or text to be copied.
type element struct {
	field   string // in capitals, of fields; empty for text
	literal string
	digits  int // of FF1 to FF9; -1 for FF, which has those of the type
	// fill says that numbers are padded with zeros and names with blanks,
	// which FM switches off.
	fill bool
	// spelled is the field as it was written, whose case names follow.
	spelled string
}

// fields are the elements of a date format, longer names before their prefixes.
var fields = []string{
	"SYYYY", "YYYY", "RRRR", "Y,YYY", "YYY", "YY", "RR", "MONTH", "MON", "MM", "MI", "DDD", "DD", "DAY", "DY", "HH24", "HH12", "HH",
	"SSSSS", "SS", "FF", "TZH", "TZM", "TZR", "TZD", "A.M.", "P.M.", "AM", "PM", "IYYY", "IW", "WW", "W", "Q", "D", "J", "X", "Y",
}

var formats sync.Map // of parsed formats by their text

// parseFormat reads a date format.
func parseFormat(format string) ([]element, error) {
	if cached, ok := formats.Load(format); ok {
		return cached.([]element), nil
	}
	var all []element
	fill := true
	for rest := format; rest != ""; {
		e, n := nextElement(rest)
		switch {
		case n == 0:
			return nil, refuse(1821)
		case e.field == "FM":
			fill = !fill
		case e.field == "FX" || e.field == "TS" || e.field == "DL":
		default:
			e.fill = fill
			all = append(all, e)
		}
		rest = rest[n:]
	}
	formats.Store(format, all)
	return all, nil
}

// nextElement returns the first element of a format and its length, 0 for one
// that does not exist.
func nextElement(s string) (element, int) {
	if s[0] == '"' {
		end := strings.IndexByte(s[1:], '"')
		if end < 0 {
			return element{}, 0
		}
		return element{literal: s[1 : end+1]}, end + 2
	}
	if strings.IndexByte("-/,.;: ", s[0]) >= 0 {
		return element{literal: s[:1]}, 1
	}
	upper := strings.ToUpper(s[:min(len(s), 5)])
	for _, modifier := range []string{"FM", "FX"} {
		if strings.HasPrefix(upper, modifier) {
			return element{field: modifier}, 2
		}
	}
	for _, f := range fields {
		if !strings.HasPrefix(upper, f) {
			continue
		}
		e, n := element{field: f, spelled: s[:len(f)]}, len(f)
		if f == "FF" {
			e.digits = -1
			if n < len(s) && s[n] >= '1' && s[n] <= '9' {
				e.digits = int(s[n] - '0')
				n++
			}
		}
		return e, n
	}
	return element{}, 0
}

// withDigits gives FF the digits of a type.
func withDigits(format []element, digits int) []element {
	all := slices.Clone(format)
	for i := range all {
		if all[i].field == "FF" && all[i].digits < 0 {
			all[i].digits = digits
		}
	}
	return all
}
