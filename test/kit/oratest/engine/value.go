package engine

import (
	"math"
	"strings"
	"time"
)

// kind says what a value is.
type kind uint8

const (
	kindNull kind = iota
	kindNumber
	kindText
	kindRaw
	kindDate
	kindTimestamp
	kindTimestampTZ
	kindTimestampLTZ
	kindInterval
	kindDouble
)

// value is one value of any type, without a pointer of its own: a million rows
// of them shall not cost a million small allocations. The zero value is NULL.
type value struct {
	kind kind
	// scale is that of a number: n / 10^scale, or the digits in s.
	scale int16
	// nano is the fraction of a second of a time or an interval.
	nano int32
	// n is the coefficient of a number that fits, the seconds since 1970 of a
	// time (of the wall clock, or in UTC where there is a zone), the seconds of
	// an interval, or the bits of a double.
	n int64
	// s is text, raw bytes, the zone of a TIMESTAMP WITH TIME ZONE, or the
	// coefficient of a number that does not fit in n.
	s string
}

var null = value{}

func (v value) isNull() bool { return v.kind == kindNull }

// text makes a character value; the empty string is NULL.
func text(s string) value {
	if s == "" {
		return null
	}
	return value{kind: kindText, s: s}
}

func raw(s string) value {
	if s == "" {
		return null
	}
	return value{kind: kindRaw, s: s}
}

func double(f float64) value {
	return value{kind: kindDouble, n: int64(math.Float64bits(f))}
}

func (v value) float() float64 { return math.Float64frombits(uint64(v.n)) }

// wall makes a time of a kind without a zone from the fields of t.
func wall(k kind, t time.Time) value {
	_, offset := t.Zone()
	v := value{kind: k, n: t.Unix() + int64(offset), nano: int32(t.Nanosecond())}
	if k == kindDate {
		v.nano = 0
	}
	return v
}

// instant makes a time of a kind with a zone, of which zone is the name.
func instant(k kind, t time.Time, zone string) value {
	return value{kind: k, n: t.Unix(), nano: int32(t.Nanosecond()), s: zone}
}

// time returns the wall clock as UTC, or the instant.
func (v value) time() time.Time { return time.Unix(v.n, int64(v.nano)).UTC() }

func interval(d time.Duration) value {
	seconds := int64(d / time.Second)
	return carry(value{kind: kindInterval, n: seconds, nano: int32(d % time.Second)})
}

// compare orders two values of one kind, neither of which is NULL.
func compare(a, b value) int {
	switch a.kind {
	case kindNumber:
		return compareNumbers(a, b)
	case kindText, kindRaw:
		return strings.Compare(a.s, b.s)
	case kindDouble:
		panic(unimplemented("the order of BINARY_DOUBLE"))
	}
	switch {
	case a.n != b.n:
		return order(a.n, b.n)
	case a.nano != b.nano:
		return order(int64(a.nano), int64(b.nano))
	}
	return 0
}

func order(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// compareNullsLast is the order of an index: ascending, NULL at the end.
func compareNullsLast(a, b value) int {
	switch {
	case a.isNull() && b.isNull():
		return 0
	case a.isNull():
		return 1
	case b.isNull():
		return -1
	}
	return compare(a, b)
}

// comparePadded compares as CHAR values are: as if the shorter one ended in
// blanks.
func comparePadded(a, b value) int {
	size := max(len(a.s), len(b.s))
	pad := func(s string) string { return s + strings.Repeat(" ", size-len(s)) }
	return strings.Compare(pad(a.s), pad(b.s))
}
