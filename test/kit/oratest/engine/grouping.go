package engine

import "fmt"

// grouping is what the expressions behind GROUP BY may use: the grouped ones,
// and aggregates.
type grouping struct {
	keys   map[string]*node
	code   int // that refuses other columns
	inside bool
	all    []*aggregate
}

// key returns the node of a grouped expression.
func (g *grouping) key(c *compiler, x expr) *node { return g.keys[canonical(x)] }

func (g *grouping) refuse(pos int) { panic(refuseAt(pos, g.code)) }

// canonical writes an expression so that equal ones are equal text, wherever
// they stand. The qualifier of a column is left out.
func canonical(x expr) string {
	switch x := x.(type) {
	case nameExpr:
		return "n:" + x.parts[len(x.parts)-1].text
	case callExpr:
		s := "f:"
		for _, p := range x.name {
			s += "." + p.text
		}
		for _, a := range x.args {
			s += "," + canonical(a)
		}
		return s + ")"
	case binaryExpr:
		return "(" + canonical(x.l) + x.op + canonical(x.r) + ")"
	case unaryExpr:
		return "(" + x.op + canonical(x.x) + ")"
	case castExpr:
		return fmt.Sprintf("cast(%s,%v)", canonical(x.x), x.typ)
	case literalExpr:
		return fmt.Sprintf("l:%v", x.value)
	}
	return fmt.Sprintf("%#v", x)
}

// aggregate is one COUNT, MIN, MAX, SUM or AVG of a block.
type aggregate struct {
	name     string
	arg      *node // nil for COUNT(*)
	distinct bool
}

var aggregates = map[string]bool{"COUNT": true, "MIN": true, "MAX": true, "SUM": true, "AVG": true}

// aggregate compiles the call of an aggregate.
func (c *compiler) aggregate(sc *scope, x callExpr) *node {
	name := x.name[0].text
	g := sc.grouping
	if g == nil || g.inside {
		panic(refuseAt(x.name[0].pos, 934))
	}
	if len(x.args) != 1 {
		c.fail(909)
	}
	a := &aggregate{name: name, distinct: x.distinct}
	typ := plain(typeNumber)
	if _, star := x.args[0].(starExpr); !star || name != "COUNT" {
		g.inside = true
		a.arg = c.value(sc, x.args[0])
		g.inside = false
		switch name {
		case "MIN", "MAX":
			typ = a.arg.typ
		case "SUM", "AVG":
			a.arg = c.to(a.arg, kindNumber)
		}
	}
	i := len(g.all)
	g.all = append(g.all, a)
	return &node{typ: typ, nullable: name != "COUNT", aggregate: true, eval: func(f *frame) (value, error) {
		return f.groups[i], nil
	}}
}

// accumulator gathers one aggregate over one group.
type accumulator struct {
	count int64
	value value
	seen  map[string]bool
}

func (a *aggregate) add(acc *accumulator, f *frame) error {
	if a.arg == nil {
		acc.count++
		return nil
	}
	v, err := a.arg.eval(f)
	if err != nil || v.isNull() {
		return err
	}
	if a.distinct {
		if acc.seen == nil {
			acc.seen = map[string]bool{}
		}
		k := keyOf(v)
		if acc.seen[k] {
			return nil
		}
		acc.seen[k] = true
	}
	acc.count++
	switch a.name {
	case "MIN", "MAX":
		if acc.value.isNull() || (compare(v, acc.value) < 0) == (a.name == "MIN") {
			acc.value = v
		}
	case "SUM", "AVG":
		if acc.value.isNull() {
			acc.value = v
		} else {
			acc.value = add(acc.value, v)
		}
	}
	return nil
}

func (a *aggregate) result(acc *accumulator) value {
	switch a.name {
	case "COUNT":
		return integer(acc.count)
	case "AVG":
		if acc.count > 0 {
			return divide(acc.value, integer(acc.count))
		}
	}
	return acc.value
}

// hasAggregate looks for aggregates in an expression, subqueries left out.
func hasAggregate(x expr) bool {
	switch x := x.(type) {
	case callExpr:
		if len(x.name) == 1 && aggregates[x.name[0].text] {
			return true
		}
		for _, a := range x.args {
			if hasAggregate(a) {
				return true
			}
		}
	case binaryExpr:
		return hasAggregate(x.l) || hasAggregate(x.r)
	case unaryExpr:
		return hasAggregate(x.x)
	case castExpr:
		return hasAggregate(x.x)
	case zoneExpr:
		return hasAggregate(x.x)
	case extractExpr:
		return hasAggregate(x.x)
	case nullExpr:
		return hasAggregate(x.x)
	case caseExpr:
		for _, w := range x.whens {
			if hasAggregate(w[0]) || hasAggregate(w[1]) {
				return true
			}
		}
		return x.other != nil && hasAggregate(x.other)
	}
	return false
}
