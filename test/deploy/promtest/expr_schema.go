package promtest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Labels are the names of the labels that a series has.
type Labels map[string]bool

// Schema says which labels the series of a metric have, by its name.
type Schema map[string]Labels

// ReadSchema reads the metrics of a node, as its /metrics shows them, and adds
// what Prometheus adds when it scrapes: the labels job and instance, and the
// metrics up and ALERTS.
func ReadSchema(metrics io.Reader) (Schema, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	s := Schema{
		"up":     labelsOf("job", "instance"),
		"ALERTS": labelsOf("job", "alertname", "alertstate", "severity"),
	}
	for name, family := range families {
		own := labelsOf("job", "instance")
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				own[label.GetName()] = true
			}
		}
		s.add(name, family.GetType(), own)
	}
	return s, nil
}

// add adds the series of a metric, of which a histogram and a summary have
// several.
func (s Schema) add(name string, kind dto.MetricType, own Labels) {
	switch kind {
	case dto.MetricType_HISTOGRAM:
		s[name+"_bucket"] = own.with("le")
	case dto.MetricType_SUMMARY:
		s[name] = own.with("quantile")
	default:
		s[name] = own
		return
	}
	s[name+"_sum"], s[name+"_count"] = own, own
}

// anything stands for all labels: those of a rule that refers to its own last
// value, while nothing else is known of it.
const anything = "*"

// Record adds what recording rules make of the metrics, in whatever order they
// stand: a rule may read one that follows, or its own last value.
func (s Schema) Record(files ...RuleFile) error {
	for left := recorded(files); ; {
		var missing []Rule
		var first error
		for _, r := range left {
			if err := s.record(r); err != nil {
				missing, first = append(missing, r), cmp.Or(first, err)
			}
		}
		if len(missing) == 0 || len(missing) == len(left) {
			return first
		}
		left = missing
	}
}

// record adds one rule. It is read twice, the second time with what it makes
// itself.
func (s Schema) record(r Rule) error {
	s[r.Record] = labelsOf(anything)
	for range 2 {
		result, err := r.Expr().Check(s)
		if err == nil && result[anything] {
			err = fmt.Errorf("%s: it is made of nothing but itself", r.Expr().Where)
		}
		if err != nil {
			delete(s, r.Record)
			return err
		}
		s[r.Record] = result.with(slices.Collect(maps.Keys(r.Labels))...)
	}
	return nil
}

func labelsOf(names ...string) Labels { return Labels{}.with(names...) }

// with returns the labels and these.
func (l Labels) with(names ...string) Labels {
	all := maps.Clone(l)
	for _, name := range names {
		all[name] = true
	}
	return all
}

// without returns the labels that are not one of these.
func (l Labels) without(names ...string) Labels {
	rest := maps.Clone(l)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// have complains of a name that is not one of the labels of what.
func (l Labels) have(what string, names ...string) error {
	for _, name := range names {
		if !l[name] && !l[anything] {
			return fmt.Errorf("%s has no label %s, but %s", what, name, l)
		}
	}
	return nil
}

// String lists the names.
func (l Labels) String() string {
	if len(l) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(l)), ", ")
}
