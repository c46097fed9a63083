package promtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// RateInterval stands for $__rate_interval in what [Dashboard.Exprs] returns
// without other values: nobody writes such a window.
const RateInterval = "13m37s"

// Values are what variables stand for in an expression.
type Values map[string]string

// AnyValues are values for all that a dashboard may use, for who only reads the
// expressions.
func AnyValues() Values {
	return Values{
		"job": "observerd", "type": ".+", "observer": ".+", "sink": ".+",
		"__rate_interval": RateInterval, "__range": "6h", "__interval": "1m",
	}
}

// DashboardExpr is an expression of a dashboard.
type DashboardExpr struct {
	Expr
	// Panel is the title of its panel; empty for that of a variable or an
	// annotation.
	Panel string
	// Instant is asked for one moment; the others are for a graph.
	Instant bool
}

// Exprs are all expressions of the dashboard: of panels, variables and
// annotations. A variable that has no value is an error.
func (d Dashboard) Exprs(values Values) ([]DashboardExpr, error) {
	var all []DashboardExpr
	add := func(e DashboardExpr, where string) error {
		e.Where = d.File + ": " + where
		text, err := values.expand(e.Text)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Where, err)
		}
		e.Text = text
		all = append(all, e)
		return nil
	}
	for _, v := range d.Templating.List {
		if text, label, ok := v.labelValues(); ok {
			if err := add(DashboardExpr{Expr: Expr{Text: text, Shown: []string{label}}, Instant: true}, "variable "+v.Name); err != nil {
				return nil, err
			}
		}
	}
	for _, a := range d.Annotations.List {
		if err := add(DashboardExpr{Expr: Expr{Text: a.Target.Expr}}, "annotation "+a.Name); err != nil {
			return nil, err
		}
	}
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			e := DashboardExpr{Expr: Expr{Text: t.Expr, Shown: legend(t.LegendFormat)}, Panel: p.Title, Instant: t.Instant}
			if err := add(e, fmt.Sprintf("panel %q, query %s", p.Title, t.RefID)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

var variables = regexp.MustCompile(`\$(\w+)|\$\{(\w+)(?::\w+)?\}|\[\[(\w+)\]\]`)

// expand puts the values in the places of the variables.
func (v Values) expand(text string) (string, error) {
	for _, name := range usedVariables(text) {
		if _, ok := v[name]; !ok {
			return "", fmt.Errorf("the variable $%s has no value; there are %s", name, strings.Join(slices.Sorted(maps.Keys(v)), ", "))
		}
	}
	return variables.ReplaceAllStringFunc(text, func(use string) string { return v[usedVariables(use)[0]] }), nil
}

// usedVariables are the names of the variables in a text.
func usedVariables(text string) (names []string) {
	for _, m := range variables.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1]+m[2]+m[3])
	}
	return names
}

var shownByLegend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// legend are the labels in the name of a series.
func legend(format string) (names []string) {
	for _, m := range shownByLegend.FindAllStringSubmatch(format, -1) {
		names = append(names, m[1])
	}
	return names
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// labelValues takes the query of a variable apart: the series, and the label of
// theirs that the variable lists.
func (v Variable) labelValues() (series, label string, ok bool) {
	m := labelValues.FindStringSubmatch(v.Definition)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}
