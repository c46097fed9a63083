package engine

func (c *compiler) caseOf(sc *scope, x caseExpr) *node {
	var conditions, results []*node
	var operand *node
	if x.operand != nil {
		operand = c.value(sc, x.operand)
	}
	for _, when := range x.whens {
		if operand != nil {
			conditions = append(conditions, c.comparison("=", operand, c.value(sc, when[0])))
		} else {
			conditions = append(conditions, c.condition(sc, when[0]))
		}
		results = append(results, c.value(sc, when[1]))
	}
	if x.other != nil {
		results = append(results, c.value(sc, x.other))
	}
	return c.firstOf(conditions, results)
}

// firstOf is the result of the first condition that is true, or a last one without a
// condition.
func (c *compiler) firstOf(conditions, results []*node) *node {
	results, typ := c.unify(results)
	n := (&node{typ: typ, nullable: true}).inherit(conditions...).inherit(results...)
	n.eval = func(f *frame) value {
		for i, result := range results {
			if i == len(conditions) || conditions[i].eval(f).isTrue() {
				return result.eval(f)
			}
		}
		return null
	}
	return n
}

// unify brings alternatives to the type of the first that has one.
func (c *compiler) unify(all []*node) ([]*node, dataType) {
	var typ dataType
	for _, n := range all {
		switch {
		case typ.name == "":
			typ = n.typ
		case typ.isText() && n.typ.isText():
			if typ.padded() {
				typ.name = typeVarchar
			}
			typ.size = max(typ.size, n.typ.size)
		case ranks[n.typ.kind()] > ranks[typ.kind()] && ranks[typ.kind()] > 0:
			typ = n.typ
		}
	}
	if typ.name == "" {
		typ = varchar(1)
	}
	out := make([]*node, len(all))
	for i, n := range all {
		out[i] = c.to(n, typ.kind())
	}
	return out, typ
}
