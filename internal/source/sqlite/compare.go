package sqlite

import (
	"cmp"
	"strings"
)

// Compare implements [observer.Source] as SQLite sorts: nothing before numbers,
// numbers by value before text, text by its bytes.
func (s *Source) Compare(a, b string) int {
	if a == b {
		return 0
	}
	x, y := rank(a), rank(b)
	switch {
	case x != y:
		return cmp.Compare(x, y)
	case x != rankNumber:
		return strings.Compare(a, b)
	}
	return compareNumbers(a, b)
}

const (
	rankNothing = iota
	rankNumber
	rankText
)

func rank(cursor string) int {
	switch {
	case cursor == "":
		return rankNothing
	case isDecimal(cursor):
		return rankNumber
	}
	return rankText
}

// compareNumbers compares the texts: a float64 would make neighbours of large
// integers equal. The whole parts have no leading zeros and fractions no
// trailing ones, so length and then bytes decide.
func compareNumbers(a, b string) int {
	an, bn := strings.HasPrefix(a, "-"), strings.HasPrefix(b, "-")
	switch {
	case an && bn:
		return compareNumbers(b[1:], a[1:])
	case an:
		return -1
	case bn:
		return 1
	}
	aw, af, _ := strings.Cut(a, ".")
	bw, bf, _ := strings.Cut(b, ".")
	return cmp.Or(cmp.Compare(len(aw), len(bw)), strings.Compare(aw, bw), strings.Compare(af, bf))
}
