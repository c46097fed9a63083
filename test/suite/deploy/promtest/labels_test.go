package promtest_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
)

// query is a PromQL expression in a file that ships.
type query struct {
	// where is the file, and the rule or panel in it.
	where string
	text  string
	// shown are the labels of the result that a legend or an annotation shows.
	shown []string
	// panel is the title of its panel, instant whether that asks for one moment.
	panel   string
	instant bool
}

// parse reads the expression with the parser of Prometheus.
func (q query) parse() (parser.Expr, error) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(q.text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\nin %s", q.where, err, q.text)
	}
	return parsed, nil
}

// names are the labels of series.
type names map[string]bool

func (n names) with(more ...string) names {
	all := names{}
	maps.Copy(all, n)
	for _, name := range more {
		all[name] = true
	}
	return all
}

func (n names) without(these ...string) names {
	return n.keep(func(name string) bool { return !slices.Contains(these, name) })
}

func (n names) keep(wanted func(string) bool) names {
	rest := names{}
	for name := range n {
		if wanted(name) {
			rest[name] = true
		}
	}
	return rest
}

// schema holds the labels of each metric and of each recording rule.
type schema map[string]names

// readSchema reads the metrics of a node, and adds what Prometheus adds when it
// scrapes.
func readSchema(t *testing.T, metrics []byte) schema {
	t.Helper()
	s := schema{
		"up":     names{}.with("job", "instance"),
		"ALERTS": names{}.with("job", "alertname", "alertstate", "severity"),
	}
	series, err := textparse.New(metrics, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		entry, err := series.Next()
		switch {
		case errors.Is(err, io.EOF):
			return s
		case err != nil:
			t.Fatal(err)
		case entry != textparse.EntrySeries:
			continue
		}
		var own labels.Labels
		series.Labels(&own)
		all := s[own.Get(model.MetricNameLabel)].with("job", "instance")
		own.Range(func(l labels.Label) { all[l.Name] = true })
		s[own.Get(model.MetricNameLabel)] = all.without(model.MetricNameLabel)
	}
}

// record adds what recording rules make of the metrics. A rule may read one that
// follows, or its own last value, so all are read until no label is new.
func (s schema) record(t *testing.T, rules []rulefmt.Rule) {
	t.Helper()
	for range rules {
		for _, r := range rules {
			parsed, err := query{where: r.Record, text: r.Expr}.parse()
			if err != nil {
				t.Fatal(err)
			}
			result, _ := s.labels(parsed) // Mistakes are looked for when all rules are known.
			s[r.Record] = result.with(slices.Collect(maps.Keys(r.Labels))...)
		}
	}
}

// check complains of a query that Prometheus does not read, that names a metric
// or a label that does not exist, or beside which a label is shown that its result
// does not have.
func (s schema) check(q query) error {
	parsed, err := q.parse()
	if err != nil {
		return err
	}
	result, err := s.labels(parsed)
	if err = errors.Join(err, result.have(parsed, q.shown...)); err != nil {
		return fmt.Errorf("%s: %w\nin %s", q.where, err, q.text)
	}
	return nil
}

// have complains of a name that is not one of the labels of what e returns.
func (n names) have(e parser.Node, wanted ...string) error {
	for _, name := range wanted {
		if !n[name] {
			return fmt.Errorf("%s has no label %s, but %q", e, name, slices.Sorted(maps.Keys(n)))
		}
	}
	return nil
}

// labels returns the labels of an expression's result. What has no case of its own
// has the labels of its parts.
func (s schema) labels(node parser.Node) (names, error) {
	var parts []names
	var errs []error
	all := names{}
	for child := range parser.ChildrenIter(node) {
		part, err := s.labels(child)
		parts, errs = append(parts, part), append(errs, err)
		maps.Copy(all, part)
	}
	complain := func(err error) { errs = append(errs, err) }
	switch e := node.(type) {
	case *parser.VectorSelector:
		own, there := s[e.Name]
		if !there {
			complain(fmt.Errorf("there is no metric %q", e.Name))
		}
		for _, m := range e.LabelMatchers {
			if m.Name != model.MetricNameLabel {
				complain(own.have(e, m.Name))
			}
		}
		all = own
	case *parser.AggregateExpr:
		complain(all.have(e.Expr, e.Grouping...))
		if e.Without {
			all = all.without(e.Grouping...)
		} else if e.Op != parser.TOPK && e.Op != parser.BOTTOMK {
			all = names{}.with(e.Grouping...)
		}
	case *parser.BinaryExpr:
		if e.LHS.Type() == parser.ValueTypeVector && e.RHS.Type() == parser.ValueTypeVector {
			result, err := binary(e, parts[0], parts[1])
			complain(err)
			all = result
		}
	case *parser.Call:
		switch e.Func.Name {
		case "histogram_quantile":
			complain(all.have(e.Args[1], "le"))
			all = all.without("le")
		case "label_replace": // (v, to, value, from, regex)
			if from := literal(e.Args[3]); from != "" {
				complain(all.have(e.Args[0], from))
			}
			all = all.with(literal(e.Args[1]))
		}
	}
	return all, errors.Join(errs...)
}

// binary joins two vectors. Sides that never match are an error: Prometheus
// answers with nothing, which looks like health.
func binary(e *parser.BinaryExpr, left, right names) (names, error) {
	m := e.VectorMatching
	var err error
	if m.On {
		err = errors.Join(left.have(e.LHS, m.MatchingLabels...), right.have(e.RHS, m.MatchingLabels...))
	} else if e.Op != parser.LOR && !maps.Equal(left.without(m.MatchingLabels...), right.without(m.MatchingLabels...)) {
		err = fmt.Errorf("%s and %s never match: their labels differ", e.LHS, e.RHS)
	}
	switch {
	case e.Op == parser.LOR:
		return left.with(slices.Collect(maps.Keys(right))...), err
	case e.Op.IsSetOperator():
		return left, err
	case m.Card == parser.CardManyToOne:
		return left.with(m.Include...), errors.Join(err, right.have(e.RHS, m.Include...))
	case m.Card == parser.CardOneToMany:
		return right.with(m.Include...), errors.Join(err, left.have(e.LHS, m.Include...))
	case m.On:
		return names{}.with(m.MatchingLabels...), err
	}
	return left.without(m.MatchingLabels...), err
}

func literal(e parser.Expr) string {
	if l, ok := e.(*parser.StringLiteral); ok {
		return l.Val
	}
	return ""
}

// found returns what the first group of a pattern has found in a text.
func found(pattern *regexp.Regexp, text string) (all []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

func TestMistakesInQueries(t *testing.T) {
	t.Parallel()
	s := readSchema(t, []byte(`# TYPE polls_total counter
polls_total{type="order",outcome="ok"} 1
acquired_total{type="order",node="a"} 1
age_seconds{type="order"} 1
live_nodes 2
# TYPE took_seconds histogram
took_seconds_bucket{type="order",le="+Inf"} 1
took_seconds_sum{type="order"} 1
took_seconds_count{type="order"} 1
`))
	s.record(t, []rulefmt.Rule{
		{Record: "type:last:seconds", Expr: `max by (type) (type:ages:seconds or type:last:seconds)`},
		{Record: "type:ages:seconds", Expr: `max by (type) (age_seconds)`},
	})
	for text, complaint := range map[string]string{
		`sum(`:                                   "parse error",
		`rate(live_nodes)`:                       "expected type range vector",
		`dead_nodes`:                             `there is no metric "dead_nodes"`,
		`live_nodes{type="order"}`:               "live_nodes{type=\"order\"} has no label type",
		`sum by (sink) (polls_total)`:            "polls_total has no label sink",
		`sum without (sink) (polls_total)`:       "polls_total has no label sink",
		`polls_total * on (node) acquired_total`: "polls_total has no label node",
		`polls_total / age_seconds`:              "never match",
		`age_seconds * on (type) group_left (node) polls_total`:                                "polls_total has no label node",
		`age_seconds * on (type) group_right (node) polls_total`:                               "age_seconds has no label node",
		`histogram_quantile(0.9, took_seconds_sum)`:                                            "took_seconds_sum has no label le",
		`label_replace(live_nodes, "x", "$1", "sink", "(.+)")`:                                 "live_nodes has no label sink",
		`type:last:seconds{node="a"}`:                                                          "has no label node",
		`sum by (node) (sum by (type) (polls_total))`:                                          "has no label node",
		`sum by (type) (polls_total)`:                                                          "",
		`sum by (node) (acquired_total)`:                                                       "has no label type",
		`topk(3, polls_total) unless on (type) age_seconds`:                                    "",
		`histogram_quantile(0.9, took_seconds_bucket)`:                                         "",
		`rate(took_seconds_sum[5m]) / rate(took_seconds_count[5m]) > 3 * age_seconds{job="a"}`: "",
		`type:last:seconds{type="order"}`:                                                      "",
	} {
		err := s.check(query{text: text, shown: []string{"type"}})
		if (err == nil) != (complaint == "") || err != nil && !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: told %v, want %q", text, err, complaint)
		}
	}
}
