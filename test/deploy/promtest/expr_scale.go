package promtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Scale shortens rules, so that a test can wait for them. It changes lengths of
// time and nothing else: the windows and offsets of expressions, how long an
// alert waits, and numbers of seconds.
type Scale struct {
	// Factor is what lengths of time are multiplied by; 1 changes nothing.
	Factor float64
	// Least is what no window becomes shorter than: a rate needs some scrapes.
	Least time.Duration
}

// times are the numbers in our rules that are lengths of time in seconds, and
// counts other large ones. A number of neither kind is refused.
var (
	times  = []float64{150, 180, 200, 300, 600, 900, 3600}
	counts = []float64{1000, 86400} // rows; seconds that a backlog takes, whatever an alert's patience
)

// small is the largest number that need not be listed.
const small = 100

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
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			n.Range = s.window(n.Range)
		case *parser.VectorSelector:
			n.OriginalOffset = s.duration(n.OriginalOffset)
		case *parser.SubqueryExpr, *parser.DurationExpr:
			err = fmt.Errorf("%s: %s is not scaled here", e.Where, n)
		case *parser.NumberLiteral:
			switch {
			case slices.Contains(times, n.Val):
				n.Val *= s.Factor
			case n.Val > small && !slices.Contains(counts, n.Val):
				err = fmt.Errorf("%s: %s is not listed as a time or a count", e.Where, n)
			}
		}
		return nil
	})
	return parsed.String(), err
}
