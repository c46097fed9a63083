package engine

// grouping is what the items of a block with aggregates may use: those alone.
type grouping struct {
	inside bool
	all    []*aggregate
}

func (g *grouping) refuse(pos int) { panic(refuseAt(pos, 937)) }

// aggregate is one COUNT, MIN or MAX of a block.
type aggregate struct {
	name string
	arg  *node // nil for COUNT(*)
}

var aggregates = map[string]bool{"COUNT": true, "MIN": true, "MAX": true}

// aggregate compiles the call of an aggregate.
func (c *compiler) aggregate(sc *scope, x callExpr) *node {
	name := x.name[0].text
	g := sc.grouping
	if g == nil || g.inside {
		panic(refuseAt(x.name[0].pos, 934))
	}
	if len(x.args) != 1 {
		panic(refuse(909))
	}
	a := &aggregate{name: name}
	typ := plain(typeNumber)
	if _, star := x.args[0].(starExpr); !star || name != "COUNT" {
		g.inside = true
		a.arg = c.value(sc, x.args[0])
		g.inside = false
		if name != "COUNT" {
			typ = a.arg.typ
		}
	}
	i := len(g.all)
	g.all = append(g.all, a)
	return &node{typ: typ, nullable: name != "COUNT", aggregate: true, eval: func(f *frame) value {
		return f.groups[i]
	}}
}

// accumulator gathers one aggregate.
type accumulator struct {
	count int64
	value value
}

func (a *aggregate) add(acc *accumulator, f *frame) {
	if a.arg == nil {
		acc.count++
		return
	}
	v := a.arg.eval(f)
	if v.isNull() {
		return
	}
	acc.count++
	if acc.value.isNull() || (compare(v, acc.value) < 0) == (a.name == "MIN") {
		acc.value = v
	}
}

func (a *aggregate) result(acc *accumulator) value {
	if a.name == "COUNT" {
		return integer(acc.count)
	}
	return acc.value
}
