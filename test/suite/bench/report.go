package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report is what a run has found, or several.
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
type circumstance struct {
	what  string
	value phrase
}

// and joins the report with that of another run of the same measurements.
func (r report) and(other report) (report, error) {
	var both report
	for i, c := range r.circumstances {
		both.circumstances = append(both.circumstances, circumstance{c.what, c.value.and(other.circumstances[i].value)})
	}
	for i, m := range r.measured {
		figures := other.measured[i].figures
		if len(m.figures) != len(figures) {
			return report{}, fmt.Errorf("two runs have found %d and %d figures about %s", len(m.figures), len(figures), m.name)
		}
		joined := measured{name: m.name}
		for j, f := range m.figures {
			f, err := f.and(figures[j])
			if err != nil {
				return report{}, err
			}
			joined.figures = append(joined.figures, f)
		}
		both.measured = append(both.measured, joined)
	}
	return both, nil
}

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
