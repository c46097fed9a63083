package main

import (
	"fmt"
	"slices"
)

// figure is one line of the report, of one run or of several.
type figure struct {
	// group is the heading under which it stands.
	group string
	what  string
	// value is ours, beside the baseline's; both with their units. A zero
	// baseline means that there is none.
	value, beside phrase
	// goal is empty for what is only reported.
	goal string
	// met says of each run to which the goal applies whether it was reached.
	met []bool
}

// verdict speaks of a goal as met only if no run has missed it.
func (f figure) verdict() string {
	missed := 0
	for _, met := range f.met {
		if !met {
			missed++
		}
	}
	switch {
	case f.goal == "" || len(f.met) == 0:
		return ""
	case missed == 0:
		return "met"
	case missed == len(f.met):
		return "MISSED"
	}
	return fmt.Sprintf("MISSED in %d of %d runs", missed, len(f.met))
}

// and joins the figure with that of another run.
func (f figure) and(other figure) (figure, error) {
	if f.group != other.group || f.what != other.what || f.goal != other.goal ||
		f.value.format != other.value.format || f.beside.format != other.beside.format {
		return figure{}, fmt.Errorf("two runs have measured different things: %s, %s: %s; and %s, %s: %s",
			f.group, f.what, f.value, other.group, other.what, other.value)
	}
	f.value, f.beside, f.met = f.value.and(other.value), f.beside.and(other.beside), slices.Concat(f.met, other.met)
	return f, nil
}
