package promtest

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// Expr is a PromQL expression somewhere in a file that ships.
type Expr struct {
	// Where is for messages: the file, and the rule or panel in it.
	Where string
	// Text is as Prometheus reads it, without variables of Grafana.
	Text string
	// Shown are the labels that texts beside the expression show of its result:
	// the legend of a panel, the annotations of an alert.
	Shown []string
}

// Parse reads an expression with the parser of Prometheus itself.
func (e Expr) Parse() (parser.Expr, error) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(e.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\nin %s", e.Where, err, e.Text)
	}
	return parsed, nil
}

// Check complains of an expression that Prometheus does not read, that names a
// metric or a label of one that is not there, or beside which a label is shown
// that its result does not have. It returns the labels of the result.
func (e Expr) Check(s Schema) (Labels, error) {
	parsed, err := e.Parse()
	if err != nil {
		return nil, err
	}
	result, err := s.labels(parsed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\nin %s", e.Where, err, e.Text)
	}
	if err := result.have("the result, as the legend or an annotation shows it,", e.Shown...); err != nil {
		return nil, fmt.Errorf("%s: %w\nin %s", e.Where, err, e.Text)
	}
	return result, nil
}

// rates complains of a rate over a window that is not the given one: in a
// graph the window has to follow the step, or rates are lost between two points.
func (e Expr) rates(window string) error {
	parsed, err := e.Parse()
	if err != nil {
		return err
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		call, ok := node.(*parser.Call)
		if ok && strings.HasSuffix(call.Func.Name, "rate") && !strings.Contains(call.String(), "["+window+"]") {
			err = fmt.Errorf("%s: %s is not over [$__rate_interval]", e.Where, call)
		}
		return nil
	})
	return err
}
