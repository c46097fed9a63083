package check

import "strings"

// voids finds what the run lacks to mean anything.
func (c *checker) voids() {
	run := c.run
	for _, record := range []struct {
		what string
		n    int
	}{
		{"versions of rows", len(run.Writes)}, {"lives of processes", len(run.Lives)}, {"events", len(run.Events)}, {"steps of cursors", len(run.Steps)}, {"changes of INT_LOCK", len(run.Leases)},
		{"grants", len(run.Grants)}, {"turns", len(run.Turns)}, {"parts of turns", len(run.Parts)},
		{"reads of the source", len(run.Polls)},
	} {
		if record.n == 0 {
			c.void("the history has no %s", record.what)
		}
	}
	required := run.Meta.Required
	if required == nil {
		required = []string{"observerd_stale_commits_refused_total", "observerd_unknown_commits_resolved_total", "observerd_takeovers_total"}
	}
	for _, name := range required {
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
