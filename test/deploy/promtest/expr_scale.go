package promtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Scale shortens rules, so that a test can wait for them. It changes lengths of
// time and nothing else: the windows and offsets of expressions, how long an
// alert waits, and the numbers that an age is compared with.
type Scale struct {
	// Factor is what lengths of time are multiplied by; 1 changes nothing.
	Factor float64
	// Least is what no window becomes shorter than: a rate needs some scrapes.
	Least time.Duration
}

// ages are the ends of the names of metrics and recording rules that are lengths
// of time which pass, by which such are judged, or moments. How long something
// took is none: the time that a poll takes does not change with the patience of
// an alert.
var ages = []string{"_age_seconds", "_held_seconds", "_interval_seconds", "_ttl_seconds", "timestamp_seconds", ":seconds"}

// Rules returns the rules of the file, shortened.
func (s Scale) Rules(file RuleFile) (RuleFile, error) {
	scaled := RuleFile{Path: file.Path, Groups: slices.Clone(file.Groups)}
	for i := range scaled.Groups {
		g := &scaled.Groups[i]
		g.Interval = model.Duration(s.duration(time.Duration(g.Interval)))
		g.Rules = slices.Clone(g.Rules)
		for j := range g.Rules {
			r := &g.Rules[j]
			text, err := s.expr(r.Expr())
			if err != nil {
				return RuleFile{}, err
			}
			r.Text = text
			r.For = model.Duration(s.duration(time.Duration(r.For)))
			r.KeepFiringFor = model.Duration(s.duration(time.Duration(r.KeepFiringFor)))
		}
	}
	return scaled, nil
}

// duration is a length of time in whole milliseconds, as Prometheus prints it.
func (s Scale) duration(d time.Duration) time.Duration {
	return time.Duration(float64(d) * s.Factor).Round(time.Millisecond)
}

func (s Scale) window(d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return max(s.duration(d), min(d, s.Least))
}

func (s Scale) expr(e Expr) (string, error) {
	parsed, err := e.Parse()
	if err != nil {
		return "", err
	}
	var written error
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			n.Range = s.window(n.Range)
			written = first(written, n.RangeExpr)
		case *parser.SubqueryExpr:
			n.Range, n.Step, n.OriginalOffset = s.window(n.Range), s.duration(n.Step), s.duration(n.OriginalOffset)
			written = first(written, n.RangeExpr, n.StepExpr, n.OriginalOffsetExpr)
		case *parser.VectorSelector:
			n.OriginalOffset = s.duration(n.OriginalOffset)
			written = first(written, n.OriginalOffsetExpr)
		case *parser.BinaryExpr:
			s.sides(n)
		case *parser.Call:
			if strings.HasPrefix(n.Func.Name, "clamp") && isAge(n.Args[0]) {
				for _, limit := range n.Args[1:] {
					s.number(limit)
				}
			}
		}
		return nil
	})
	if written != nil {
		return "", fmt.Errorf("%s: %w", e.Where, written)
	}
	return parsed.String(), nil
}

// first refuses lengths of time that are computed.
func first(err error, computed ...*parser.DurationExpr) error {
	for _, c := range computed {
		if c != nil && err == nil {
			err = fmt.Errorf("%s: a length of time that is computed cannot be scaled", c)
		}
	}
	return err
}

// sides shortens the number that an age is compared with, or that is added to
// one or taken from it.
func (s Scale) sides(e *parser.BinaryExpr) {
	if !e.Op.IsComparisonOperator() && e.Op != parser.ADD && e.Op != parser.SUB {
		return
	}
	switch {
	case isAge(e.LHS):
		s.number(e.RHS)
	case isAge(e.RHS):
		s.number(e.LHS)
	}
}

// number shortens a number. What is none stays.
func (s Scale) number(e parser.Expr) {
	switch e := e.(type) {
	case *parser.NumberLiteral:
		e.Val *= s.Factor
	case *parser.ParenExpr:
		s.number(e.Expr)
	case *parser.UnaryExpr:
		s.number(e.Expr)
	case *parser.BinaryExpr: // 5 * 60
		if e.Op == parser.MUL && e.Type() == parser.ValueTypeScalar {
			s.number(e.LHS)
		}
	}
}

// isAge reports whether the value of an expression is a length of time that
// passes.
func isAge(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return slices.ContainsFunc(ages, func(end string) bool { return strings.HasSuffix(e.Name, end) })
	case *parser.MatrixSelector:
		return isAge(e.VectorSelector)
	case *parser.SubqueryExpr:
		return isAge(e.Expr)
	case *parser.ParenExpr:
		return isAge(e.Expr)
	case *parser.UnaryExpr:
		return isAge(e.Expr)
	case *parser.AggregateExpr:
		return e.Op != parser.COUNT && e.Op != parser.COUNT_VALUES && e.Op != parser.GROUP && isAge(e.Expr)
	case *parser.Call:
		return agesOf(e)
	case *parser.BinaryExpr:
		return agesOfBoth(e)
	}
	return false
}

func agesOf(e *parser.Call) bool {
	switch e.Func.Name {
	case "rate", "irate", "increase", "delta", "idelta", "deriv", "changes", "resets", "count_over_time", "absent", "absent_over_time", "vector":
		return false
	case "time":
		return true
	}
	return slices.ContainsFunc(e.Args, isAge)
}

func agesOfBoth(e *parser.BinaryExpr) bool {
	switch {
	case e.ReturnBool:
		return false
	case e.Op == parser.DIV:
		return isAge(e.LHS) && !isAge(e.RHS)
	case e.Op == parser.ADD, e.Op == parser.SUB, e.Op == parser.MUL, e.Op == parser.LOR:
		return isAge(e.LHS) || isAge(e.RHS)
	}
	return isAge(e.LHS)
}
