package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report is what a run has found.
type report struct {
	circumstances []circumstance
	measured      []measured
}

// measured is what one measurement has found.
type measured struct {
	name    string
	figures []figure
}

// circumstance is something that figures depend on.
type circumstance struct{ what, value string }

// text is the report for a terminal.
func (r report) text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.circumstances {
		fmt.Fprintf(table, "%s\t%s\n", c.what, c.value)
	}
	group := ""
	for _, m := range r.measured {
		for _, f := range m.figures {
			if f.group != group {
				group = f.group
				fmt.Fprintf(table, "\n%s\n", group)
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", f.what, f.value, f.beside, f.goal, f.verdict())
		}
	}
	return table.Flush()
}
