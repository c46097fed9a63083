package promtest

import (
	"fmt"
	"maps"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// labels returns the labels of an expression's result. The error names the
// first metric or label in it that is not there. What has no case of its own has
// the labels of its parts.
func (s Schema) labels(node parser.Node) (Labels, error) {
	if e, ok := node.(*parser.VectorSelector); ok {
		return s.selector(e)
	}
	var parts []Labels
	all := Labels{}
	for child := range parser.ChildrenIter(node) {
		part, err := s.labels(child)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		maps.Copy(all, part)
	}
	switch e := node.(type) {
	case *parser.AggregateExpr:
		return aggregate(e, all)
	case *parser.BinaryExpr:
		if e.LHS.Type() == parser.ValueTypeVector && e.RHS.Type() == parser.ValueTypeVector {
			return binary(e, parts[0], parts[1])
		}
	case *parser.Call:
		return call(e, all)
	}
	return all, nil
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

func aggregate(e *parser.AggregateExpr, inner Labels) (Labels, error) {
	err := inner.have(e.Expr.String(), e.Grouping...)
	switch {
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return inner, err
	case e.Without:
		return inner.without(e.Grouping...), err
	}
	return labelsOf(e.Grouping...), err
}

// binary joins two vectors. Sides that can never match are an error: Prometheus
// would answer with nothing, which looks like health.
func binary(e *parser.BinaryExpr, left, right Labels) (Labels, error) {
	m := e.VectorMatching
	l, r := left.without(m.MatchingLabels...), right.without(m.MatchingLabels...)
	var err error
	switch {
	case m.On:
		if err = left.have(e.LHS.String(), m.MatchingLabels...); err == nil {
			err = right.have(e.RHS.String(), m.MatchingLabels...)
		}
	case e.Op != parser.LOR && !maps.Equal(l, r) && !l[anything] && !r[anything]:
		err = fmt.Errorf("nothing matches: %s has the labels %s, %s has %s", e.LHS, l, e.RHS, r)
	}
	switch {
	case err != nil:
		return nil, err
	case e.Op == parser.LOR:
		maps.Copy(l, left)
		maps.Copy(l, right)
		return l, nil
	case e.Op.IsSetOperator():
		return left, nil
	case m.Card == parser.CardManyToOne:
		return left.with(m.Include...), right.have(e.RHS.String(), m.Include...)
	case m.Card == parser.CardOneToMany:
		return right.with(m.Include...), left.have(e.LHS.String(), m.Include...)
	case m.On:
		return labelsOf(m.MatchingLabels...), nil
	}
	return l, nil
}

func call(e *parser.Call, inner Labels) (Labels, error) {
	switch e.Func.Name {
	case "histogram_quantile":
		return inner.without("le"), inner.have(e.Args[1].String(), "le")
	case "label_replace": // (v, to, value, from, regex)
		if from := text(e.Args[3]); from != "" {
			return inner.with(text(e.Args[1])), inner.have(e.Args[0].String(), from)
		}
		return inner.with(text(e.Args[1])), nil
	case "absent", "absent_over_time", "label_join", "scalar":
		return nil, fmt.Errorf("the labels of %s are not known here", e.Func.Name)
	}
	return inner, nil
}

func text(e parser.Expr) string {
	if literal, ok := e.(*parser.StringLiteral); ok {
		return literal.Val
	}
	return ""
}
