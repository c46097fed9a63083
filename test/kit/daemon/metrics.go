package daemon

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sort"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
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

func parseMetrics(text []byte) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return Metrics{}, fmt.Errorf("read metrics: %w", err)
	}
	m := Metrics{Counters: make(map[string]float64), Gauges: make(map[string]float64)}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			m.add(name, labelText(metric), metric)
		}
	}
	return m, nil
}

func (m Metrics) add(name, labels string, metric *dto.Metric) {
	switch {
	case metric.Counter != nil:
		m.Counters[name+labels] = metric.GetCounter().GetValue()
	case metric.Gauge != nil:
		m.Gauges[name+labels] = metric.GetGauge().GetValue()
	case metric.Histogram != nil:
		m.Counters[name+"_count"+labels] = float64(metric.GetHistogram().GetSampleCount())
		m.Counters[name+"_sum"+labels] = metric.GetHistogram().GetSampleSum()
	}
}

func labelText(metric *dto.Metric) string {
	var pairs []string
	for _, label := range metric.GetLabel() {
		pairs = append(pairs, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
	}
	if len(pairs) == 0 {
		return ""
	}
	sort.Strings(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
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
