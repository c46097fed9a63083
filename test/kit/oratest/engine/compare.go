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

// compatible refuses to compare values of different kinds. Oracle would convert one of
// them, by the formats of the session, and find no index for it.
func compatible(a, b dataType) {
	x, y := a.kind(), b.kind()
	switch {
	case a.lob() || b.lob():
		panic(refuse(932, "-", "CLOB"))
	case x == kindNull || y == kindNull:
	case x != y || x == kindDouble || a.national() != b.national():
		panic(refuse(932, string(a.name), string(b.name)))
	}
}

// to converts a node implicitly; a node that needs no conversion stays as it is.
func (c *compiler) to(n *node, k kind) *node {
	from := n.typ.kind()
	if from == k || from == kindNull {
		return n
	}
	s := c.session
	if from == kindInterval && k == kindText {
		digits := n.typ.scale
		return derived(varchar(30), n, func(v value) value { return text(intervalText(v, digits)) })
	}
	return derived(typeOf(k), n, func(v value) value { return s.convert(v, k) })
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
	compatible(left.typ, right.typ)
	padded := left.typ.padded() && right.typ.padded()
	l, r := kept(left), kept(right)
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

// kept is the node with its value remembered for an execution, where it reads
// no row: a bound is not to be parsed again for each of a million rows.
func kept(n *node) *node {
	if !n.fixed(0) || n.literal != nil {
		return n
	}
	out := *n
	out.eval = once(n.eval)
	return &out
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
