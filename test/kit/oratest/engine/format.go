package engine

import (
	"strings"
	"sync"
)

// element is one piece of a date format: a field, or text to be copied.
type element struct {
	field   string // in capitals, of fields; empty for text
	literal string
	digits  int // of FF1 to FF9
}

// fields are the elements of a date format that the engine knows; any other is
// refused.
var fields = []string{"SYYYY", "YYYY", "MM", "MI", "DD", "HH24", "SS", "FF", "TZH", "TZM"}

var formats sync.Map // of parsed formats by their text

// parseFormat reads a date format.
func parseFormat(format string) []element {
	if cached, ok := formats.Load(format); ok {
		return cached.([]element)
	}
	var all []element
	for rest := format; rest != ""; {
		e, n := nextElement(rest)
		if n == 0 {
			panic(refuse(1821))
		}
		all = append(all, e)
		rest = rest[n:]
	}
	formats.Store(format, all)
	return all
}

// nextElement returns the first element of a format and its length, 0 for one
// that does not exist.
func nextElement(s string) (element, int) {
	if strings.IndexByte("-/,.;: ", s[0]) >= 0 {
		return element{literal: s[:1]}, 1
	}
	upper := strings.ToUpper(s[:min(len(s), 5)])
	for _, f := range fields {
		if !strings.HasPrefix(upper, f) {
			continue
		}
		e, n := element{field: f}, len(f)
		if f == "FF" {
			if n == len(s) || s[n] < '1' || s[n] > '9' {
				panic(unimplemented("FF without digits"))
			}
			e.digits = int(s[n] - '0')
			n++
		}
		return e, n
	}
	return element{}, 0
}
