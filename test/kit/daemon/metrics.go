package daemon

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Metrics are what a process counts. The names are written as Prometheus
// prints them, with sorted labels: name{type="order"}.
type Metrics struct {
	// Counters only ever grow while the process lives. Of a histogram there are
	// the _count and the _sum.
	Counters map[string]float64
	Gauges   map[string]float64
}

// Metrics reads the metrics of the process.
func (p *Process) Metrics(ctx context.Context) (Metrics, error) {
	status, body, err := p.Get(ctx, "/metrics")
	if err != nil {
		return Metrics{}, err
	}
	if status != http.StatusOK {
		return Metrics{}, fmt.Errorf("ask %s for its metrics: it answers %d", p.name, status)
	}
	return parseMetrics(body)
}

// parseMetrics reads the text format of Prometheus, as client_golang writes it: the type
// of a metric before its samples, labels sorted, no timestamps.
func parseMetrics(text []byte) (Metrics, error) {
	m := Metrics{Counters: make(map[string]float64), Gauges: make(map[string]float64)}
	var name, kind string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if declared, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ = strings.Cut(declared, " ")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil || end < 0 {
			return Metrics{}, fmt.Errorf("read metrics: not a sample: %q", line)
		}
		m.add(name, kind, line[:end], value)
	}
	return m, nil
}

// add adds a sample of the metric of that name and type.
func (m Metrics) add(name, kind, sample string, value float64) {
	of, _, _ := strings.Cut(sample, "{")
	switch {
	case kind == "counter", kind == "histogram" && (of == name+"_count" || of == name+"_sum"):
		m.Counters[sample] = value
	case kind == "gauge":
		m.Gauges[sample] = value
	}
}

// Sum adds up the counters and gauges of that name whose labels hold all of
// these texts, such as `type="order"`.
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for _, values := range []map[string]float64{m.Counters, m.Gauges} {
		for key, value := range values {
			if matches(key, name, labels) {
				sum += value
			}
		}
	}
	return sum
}

func matches(key, name string, labels []string) bool {
	of, rest, _ := strings.Cut(key, "{")
	if of != name {
		return false
	}
	for _, label := range labels {
		if !strings.Contains(rest, label) {
			return false
		}
	}
	return true
}
