package promtest

import (
	"fmt"
	"maps"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// labels returns the labels of an expression's result. The error names the
// first metric or label in it that is not there. What is no vector has none.
func (s Schema) labels(e parser.Expr) (Labels, error) {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return s.selector(e)
	case *parser.MatrixSelector:
		return s.labels(e.VectorSelector)
	case *parser.SubqueryExpr:
		return s.labels(e.Expr)
	case *parser.ParenExpr:
		return s.labels(e.Expr)
	case *parser.UnaryExpr:
		return s.labels(e.Expr)
	case *parser.AggregateExpr:
		return s.aggregate(e)
	case *parser.BinaryExpr:
		return s.binary(e)
	case *parser.Call:
		return s.call(e)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return Labels{}, nil
	}
	return nil, fmt.Errorf("%T is not known here; teach it to Schema.labels", e)
}

func (s Schema) selector(e *parser.VectorSelector) (Labels, error) {
	own, ok := s[e.Name]
	if !ok {
		return nil, fmt.Errorf("there is no metric %q", e.Name)
	}
	for _, m := range e.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if err := own.have(e.Name, m.Name); err != nil {
			return nil, err
		}
	}
	return own, nil
}

func (s Schema) aggregate(e *parser.AggregateExpr) (Labels, error) {
	inner, err := s.labels(e.Expr)
	if err != nil {
		return nil, err
	}
	if e.Param != nil {
		if _, err := s.labels(e.Param); err != nil {
			return nil, err
		}
	}
	if err := inner.have(e.Expr.String(), e.Grouping...); err != nil {
		return nil, err
	}
	switch {
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return inner, nil
	case e.Without:
		return inner.without(e.Grouping...), nil
	}
	return labelsOf(e.Grouping...), nil
}

func (s Schema) call(e *parser.Call) (Labels, error) {
	result := Labels{}
	for i := len(e.Args) - 1; i >= 0; i-- { // So that the first vector has the last word.
		inner, err := s.labels(e.Args[i])
		if err != nil {
			return nil, err
		}
		if kind := e.Args[i].Type(); kind == parser.ValueTypeVector || kind == parser.ValueTypeMatrix {
			result = inner
		}
	}
	switch e.Func.Name {
	case "scalar":
		return Labels{}, nil
	case "absent", "absent_over_time":
		return demanded(e.Args[0]), nil
	case "histogram_quantile":
		return result.without("le"), result.have(e.Args[1].String(), "le")
	case "label_replace", "label_join":
		return s.relabel(e, result)
	}
	return result, nil
}

// demanded are the labels that absent knows of a series that is not there.
func demanded(e parser.Expr) Labels {
	if matrix, ok := e.(*parser.MatrixSelector); ok {
		e = matrix.VectorSelector
	}
	known := Labels{}
	if selector, ok := e.(*parser.VectorSelector); ok {
		for _, m := range selector.LabelMatchers {
			known[m.Name] = m.Type == labels.MatchEqual && m.Name != model.MetricNameLabel
		}
	}
	maps.DeleteFunc(known, func(_ string, equal bool) bool { return !equal })
	return known
}

// relabel is label_replace(v, to, value, from, regex) or label_join(v, to,
// separator, from…).
func (s Schema) relabel(e *parser.Call, inner Labels) (Labels, error) {
	to, from := text(e.Args[1]), e.Args[3:]
	if e.Func.Name == "label_replace" {
		from = from[:1]
	}
	for _, arg := range from {
		if name := text(arg); name != "" {
			if err := inner.have(e.Args[0].String(), name); err != nil {
				return nil, err
			}
		}
	}
	return inner.with(to), nil
}

func text(e parser.Expr) string {
	if literal, ok := e.(*parser.StringLiteral); ok {
		return literal.Val
	}
	return ""
}
