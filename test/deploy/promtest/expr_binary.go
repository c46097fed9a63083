package promtest

import (
	"fmt"
	"maps"

	"github.com/prometheus/prometheus/promql/parser"
)

// binary joins two sides. Sides that can never match are an error: Prometheus
// would answer with nothing, which looks like health.
func (s Schema) binary(e *parser.BinaryExpr) (Labels, error) {
	left, err := s.labels(e.LHS)
	if err != nil {
		return nil, err
	}
	right, err := s.labels(e.RHS)
	if err != nil {
		return nil, err
	}
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return right, nil
	case e.RHS.Type() == parser.ValueTypeScalar:
		return left, nil
	}
	if err := matching(e, left, right); err != nil {
		return nil, err
	}
	m := e.VectorMatching
	switch {
	case e.Op == parser.LOR:
		both := maps.Clone(left)
		maps.Copy(both, right)
		return both, nil
	case e.Op.IsSetOperator():
		return left, nil
	case m.Card == parser.CardManyToOne:
		return left.with(m.Include...), right.have(e.RHS.String(), m.Include...)
	case m.Card == parser.CardOneToMany:
		return right.with(m.Include...), left.have(e.LHS.String(), m.Include...)
	case m.On:
		return labelsOf(m.MatchingLabels...), nil
	}
	return left.without(m.MatchingLabels...), nil
}

// matching complains of sides without a common ground.
func matching(e *parser.BinaryExpr, left, right Labels) error {
	m := e.VectorMatching
	if m.On {
		if err := left.have(e.LHS.String(), m.MatchingLabels...); err != nil {
			return err
		}
		return right.have(e.RHS.String(), m.MatchingLabels...)
	}
	l, r := left.without(m.MatchingLabels...), right.without(m.MatchingLabels...)
	if e.Op != parser.LOR && !maps.Equal(l, r) && !l[anything] && !r[anything] {
		return fmt.Errorf("nothing matches: %s has the labels %s, %s has %s", e.LHS, l, e.RHS, r)
	}
	return nil
}
