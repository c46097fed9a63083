package check

import "strings"

// voids finds what the run lacks to mean anything.
func (c *checker) voids() {
	run := c.run
	if n := len(run.Writes); n < c.demands.Versions {
		c.void("the source committed %d versions of rows, at least %d are wanted", n, c.demands.Versions)
	}
	for _, record := range []struct {
		what string
		n    int
	}{
		{"events", len(run.Events)}, {"steps of cursors", len(run.Steps)}, {"changes of INT_LOCK", len(run.Leases)},
		{"grants", len(run.Grants)}, {"turns", len(run.Turns)}, {"parts of turns", len(run.Parts)},
		{"reads of the source", len(run.Polls)}, {"sinks", len(run.Delivered)},
	} {
		if record.n == 0 {
			c.void("the history has no %s", record.what)
		}
	}
	for _, name := range c.demands.Counters {
		value := sum(run.Counters, name)
		c.report.Required[name] = value
		if value <= 0 {
			c.void("%s stayed at 0", name)
		}
	}
}

// sum adds up the series of a counter; a name with labels is one series.
func sum(counters map[string]float64, name string) (total float64) {
	for series, value := range counters {
		bare, _, _ := strings.Cut(series, "{")
		if series == name || bare == name {
			total += value
		}
	}
	return total
}
