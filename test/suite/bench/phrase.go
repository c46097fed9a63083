package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// phrase is a text with parts that differ from run to run. What several runs have
// to say in the same words becomes one phrase.
type phrase struct {
	// format is one of package fmt, with a %s for each part.
	format string
	parts  []part
}

// part is what runs differ in.
type part interface {
	fmt.Stringer
	// and joins the part with that of another run, which is of the same type.
	and(part) part
}

func say(format string, parts ...part) phrase { return phrase{format, parts} }

func (p phrase) String() string {
	texts := make([]any, len(p.parts))
	for i, one := range p.parts {
		texts[i] = one
	}
	return fmt.Sprintf(p.format, texts...)
}

// and joins the phrase with that of another run, which has the same format.
func (p phrase) and(other phrase) phrase {
	both := phrase{format: p.format}
	for i, one := range p.parts {
		both.parts = append(both.parts, one.and(other.parts[i]))
	}
	return both
}

// number is a measured number: the lowest and the highest of the runs.
type number struct {
	low, high float64
	decimals  int
}

func whole[T ~int | ~int64 | ~float64](value T) number { return decimal(float64(value), 0) }

func decimal(value float64, decimals int) number { return number{value, value, decimals} }

func (n number) String() string {
	low, high := written(n.low, n.decimals), written(n.high, n.decimals)
	if low == high {
		return low
	}
	return low + " to " + high
}

func (n number) and(other part) part {
	o := other.(number)
	return number{min(n.low, o.low), max(n.high, o.high), n.decimals}
}

// written writes a number as people read it.
func written(value float64, decimals int) string {
	text := strconv.FormatFloat(math.Abs(value), 'f', decimals, 64)
	digits, _, _ := strings.Cut(text, ".")
	for i := len(digits) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if value < 0 {
		return "-" + text
	}
	return text
}

// count is a number that adds up over the runs.
type count int

func (c count) String() string { return strconv.Itoa(int(c)) }

func (c count) and(other part) part { return c + other.(count) }

// words are what the runs have said, each thing once.
type words []string

func (w words) String() string { return strings.Join(w, " or ") }

func (w words) and(other part) part {
	all := slices.Clone(w)
	for _, one := range other.(words) {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
