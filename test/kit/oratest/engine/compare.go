package engine

// truth makes the value of a condition.
func truth(b bool) value {
	if b {
		return value{kind: kindNumber, n: 1}
	}
	return value{kind: kindNumber}
}

func (v value) isTrue() bool { return v.kind == kindNumber && v.n == 1 }

func (v value) isFalse() bool { return v.kind == kindNumber && v.n == 0 }

// ranks order the types of times: the lower one is converted to the higher.
var ranks = map[kind]int{kindDate: 1, kindTimestamp: 2, kindTimestampLTZ: 3, kindTimestampTZ: 4}

// common finds the kind in which two types are compared.
func (c *compiler) common(a, b dataType) kind {
	x, y := a.kind(), b.kind()
	if a.lob() || b.lob() {
		c.fail(932, "-", "CLOB")
	}
	switch {
	case x == kindNull:
		return y
	case y == kindNull || x == y:
		return x
	case x == kindText:
		return y
	case y == kindText:
		return x
	case x == kindDouble && y == kindNumber, x == kindNumber && y == kindDouble:
		return kindDouble
	case ranks[x] > 0 && ranks[y] > 0:
		if ranks[x] > ranks[y] {
			return x
		}
		return y
	}
	c.fail(932, string(a.name), string(b.name))
	return kindNull
}

// to converts a node implicitly; a node that needs no conversion stays as it is.
func (c *compiler) to(n *node, k kind) *node {
	from := n.typ.kind()
	if from == k || from == kindNull || k == kindNull {
		return n
	}
	s := c.session
	if from == kindInterval && k == kindText {
		digits := n.typ.scale
		return derived(varchar(30), n, func(v value) value { return text(intervalText(v, digits)) })
	}
	if ranks[from] > 0 && k == kindText {
		format := withDigits(s.format(from), n.typ.scale)
		return derived(varchar(75), n, func(v value) value {
			return text(writeTime(v, format, s))
		})
	}
	out := &node{typ: typeOf(k), nullable: n.nullable}
	out.eval = func(f *frame) value {
		return s.convert(n.eval(f), k)
	}
	return out.inherit(n)
}

// typeOf is the type without sizes of a kind.
func typeOf(k kind) dataType {
	return plain(map[kind]typeName{
		kindNumber: typeNumber, kindText: typeVarchar, kindRaw: typeRaw, kindDate: typeDate, kindTimestamp: typeTimestamp,
		kindTimestampTZ: typeTimestampTZ, kindTimestampLTZ: typeTimestampLTZ, kindInterval: typeInterval, kindDouble: typeDouble,
	}[k])
}

// comparison compiles left op right.
func (c *compiler) comparison(op string, left, right *node) *node {
	k := c.common(left.typ, right.typ)
	padded := left.typ.padded() && right.typ.padded()
	l, r := once(c.to(left, k)), once(c.to(right, k))
	if k == kindText && left.typ.national() != right.typ.national() {
		// The side that is not national is converted.
		if left.typ.national() {
			r = hidden(r)
		} else {
			l = hidden(l)
		}
	}
	n := (&node{typ: plain(typeNumber), condition: true, nullable: true}).inherit(l, r)
	n.comparison = &comparison{op, l, r}
	n.eval = func(f *frame) value {
		a := l.eval(f)
		if a.isNull() {
			return null
		}
		b := r.eval(f)
		if b.isNull() {
			return null
		}
		if padded {
			return truth(holds(op, comparePadded(a, b)))
		}
		return truth(holds(op, compare(a, b)))
	}
	return n
}

// once is the node with its value remembered for an execution, where it reads
// no row: a bound is not to be parsed again for each of a million rows.
func once(n *node) *node {
	if !n.fixed(0) || n.outer || n.literal != nil {
		return n
	}
	var last *run
	var result value
	out := *n
	out.eval = func(f *frame) value {
		if last == f.run {
			return result
		}
		last, result = f.run, n.eval(f)
		return result
	}
	return &out
}

// hidden is the node behind a conversion that leaves its value alone, but that
// no index sees through.
func hidden(n *node) *node {
	if n.column == nil {
		return n
	}
	h := *n
	h.column = nil
	return &h
}

func holds(op string, d int) bool {
	switch op {
	case "=":
		return d == 0
	case "<>":
		return d != 0
	case "<":
		return d < 0
	case "<=":
		return d <= 0
	case ">":
		return d > 0
	}
	return d >= 0
}

// derived is a function of one value that is NULL for NULL.
func derived(typ dataType, in *node, f func(value) value) *node {
	n := &node{typ: typ, nullable: in.nullable}
	n.eval = func(fr *frame) value {
		v := in.eval(fr)
		if v.isNull() {
			return null
		}
		return f(v)
	}
	return n.inherit(in)
}

func (c *compiler) isNull(sc *scope, x nullExpr) *node {
	in := c.value(sc, x.x)
	n := &node{typ: plain(typeNumber), condition: true}
	op := "IS NULL"
	if x.not {
		op = "IS NOT NULL"
	}
	n.comparison = &comparison{op: op, left: in}
	n.eval = func(f *frame) value {
		return truth(in.eval(f).isNull() != x.not)
	}
	return n.inherit(in)
}

// logic compiles AND and OR with their three values.
func (c *compiler) logic(sc *scope, x binaryExpr) *node {
	return logical(x.op, c.condition(sc, x.l), c.condition(sc, x.r))
}

func logical(op string, l, r *node) *node {
	n := (&node{typ: plain(typeNumber), condition: true, nullable: true}).inherit(l, r)
	decisive := value.isFalse
	if op == "OR" {
		decisive = value.isTrue
	}
	n.eval = func(f *frame) value {
		a := l.eval(f)
		if decisive(a) {
			return a
		}
		b := r.eval(f)
		if decisive(b) {
			return b
		}
		if a.isNull() {
			return a
		}
		return b
	}
	return n
}
