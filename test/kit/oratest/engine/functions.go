package engine

import (
	"strings"
)

// function makes the node of a call from its arguments.
type function struct {
	least, most int
	make        func(c *compiler, args []*node) *node
}

// functions are the functions by name. It is filled in by tables of its own in
// the files of the kinds of functions.
var functions = merge(timeFunctions, textFunctions, numberFunctions, choiceFunctions)

func merge(all ...map[string]function) map[string]function {
	m := map[string]function{}
	for _, part := range all {
		for name, f := range part {
			m[name] = f
		}
	}
	return m
}

func (c *compiler) call(sc *scope, x callExpr) *node {
	names := make([]string, len(x.name))
	for i, p := range x.name {
		names[i] = p.text
	}
	name := strings.TrimPrefix(strings.Join(names, "."), "SYS.")
	if aggregates[name] {
		return c.aggregate(sc, x)
	}
	if clocks[name] && len(x.args) == 1 {
		return c.clock(sc, name, x.args[0])
	}
	f, ok := functions[name]
	if !ok {
		if n := c.routine(sc, names[len(names)-1]); n != nil {
			return n
		}
		panic(invalid(x.name))
	}
	args := c.values(sc, x.args)
	if len(args) < f.least || len(args) > f.most {
		panic(refuseAt(x.name[0].pos, 909))
	}
	return f.make(c, args)
}

// clocks take the digits of their fraction as an argument.
var clocks = map[string]bool{"SYSTIMESTAMP": true, "CURRENT_TIMESTAMP": true, "LOCALTIMESTAMP": true}

func (c *compiler) clock(sc *scope, name string, x expr) *node {
	digits := 6
	n := c.value(sc, x)
	if n.literal == nil || n.literal.kind != kindNumber {
		c.fail(30088)
	}
	if d, _ := n.literal.int64(); d >= 0 && d <= 9 {
		digits = int(d)
	}
	return c.timestamp(name, digits)
}

// routine compiles the call of a function that a test has created.
func (c *compiler) routine(sc *scope, name string) *node {
	o, err := c.session.engine.resolve(c.session, c.user, "", name)
	if err != nil || o.routine == nil {
		return nil
	}
	r := o.routine
	result := c.value(&scope{}, r.ret)
	s := c.session
	n := &node{typ: r.typ, nullable: true, rownum: true}
	n.eval = func(f *frame) (value, error) {
		if r.body != nil {
			if err := s.callRoutine(f.run, r); err != nil {
				return null, err
			}
		}
		return result.eval(f)
	}
	return n
}

// simple is a function of values that is NULL where one of them is.
func simple(typ dataType, kinds []kind, f func(s *session, v []value) (value, error)) func(*compiler, []*node) *node {
	return func(c *compiler, args []*node) *node {
		s := c.session
		n := &node{typ: typ, nullable: true}
		for i, a := range args {
			args[i] = c.to(a, kinds[min(i, len(kinds)-1)])
		}
		n.eval = func(fr *frame) (value, error) {
			v := make([]value, len(args))
			for i, a := range args {
				var err error
				if v[i], err = a.eval(fr); err != nil || v[i].isNull() {
					return null, err
				}
			}
			return f(s, v)
		}
		return n.inherit(args...)
	}
}

var choiceFunctions = map[string]function{
	"NVL":      {2, 2, coalesce},
	"COALESCE": {2, 100, coalesce},
	"NVL2": {3, 3, func(c *compiler, args []*node) *node {
		results, typ := c.unify(args[1:])
		n := (&node{typ: typ, nullable: true}).inherit(args...)
		n.eval = func(f *frame) (value, error) {
			v, err := args[0].eval(f)
			if err != nil {
				return null, err
			}
			if v.isNull() {
				return results[1].eval(f)
			}
			return results[0].eval(f)
		}
		return n
	}},
	"NULLIF": {2, 2, func(c *compiler, args []*node) *node {
		equal := c.comparison("=", args[0], args[1])
		n := (&node{typ: args[0].typ, nullable: true}).inherit(args...)
		n.eval = func(f *frame) (value, error) {
			same, err := equal.eval(f)
			if err != nil || same.isTrue() {
				return null, err
			}
			return args[0].eval(f)
		}
		return n
	}},
	"DECODE":   {3, 255, decode},
	"GREATEST": {1, 255, func(c *compiler, args []*node) *node { return extreme(c, args, 1) }},
	"LEAST":    {1, 255, func(c *compiler, args []*node) *node { return extreme(c, args, -1) }},
	"SYS_CONTEXT": {2, 3, simple(varchar(256), []kind{kindText}, func(s *session, v []value) (value, error) {
		return s.userenv(v[0].s, v[1].s)
	})},
	"USERENV": {1, 1, simple(varchar(256), []kind{kindText}, func(s *session, v []value) (value, error) {
		return s.userenv("USERENV", v[0].s)
	})},
	"JSON_SERIALIZE": {1, 1, simple(dataType{name: typeVarchar, size: 4000}, []kind{kindText}, func(_ *session, v []value) (value, error) {
		return v[0], nil
	})},
}

func coalesce(c *compiler, args []*node) *node {
	args, typ := c.unify(args)
	n := (&node{typ: typ, nullable: true}).inherit(args...)
	for _, a := range args {
		n.nullable = n.nullable && a.nullable
	}
	n.eval = func(f *frame) (value, error) {
		for _, a := range args {
			if v, err := a.eval(f); err != nil || !v.isNull() {
				return v, err
			}
		}
		return null, nil
	}
	return n
}

// decode takes two NULLs for equal, unlike a comparison.
func decode(c *compiler, args []*node) *node {
	var equals, results []*node
	i := 1
	for ; i+1 < len(args); i += 2 {
		equals = append(equals, c.comparison("=", args[0], args[i]))
		results = append(results, args[i+1])
	}
	if i < len(args) {
		results = append(results, args[i])
	}
	results, typ := c.unify(results)
	n := (&node{typ: typ, nullable: true}).inherit(args...)
	n.eval = func(f *frame) (value, error) {
		for k, equal := range equals {
			same, err := equal.eval(f)
			if err != nil {
				return null, err
			}
			if same.isNull() {
				if same, err = bothNull(f, args[0], args[2*k+1]); err != nil {
					return null, err
				}
			}
			if same.isTrue() {
				return results[k].eval(f)
			}
		}
		if len(results) > len(equals) {
			return results[len(equals)].eval(f)
		}
		return null, nil
	}
	return n
}

func bothNull(f *frame, a, b *node) (value, error) {
	x, err := a.eval(f)
	if err != nil {
		return null, err
	}
	y, err := b.eval(f)
	return truth(x.isNull() && y.isNull()), err
}

func extreme(c *compiler, args []*node, sign int) *node {
	k := args[0].typ.kind()
	for i := range args {
		args[i] = c.to(args[i], k)
	}
	n := (&node{typ: args[0].typ, nullable: true}).inherit(args...)
	n.eval = func(f *frame) (value, error) {
		best := null
		for _, a := range args {
			v, err := a.eval(f)
			if err != nil || v.isNull() {
				return null, err
			}
			if best.isNull() || compare(v, best)*sign > 0 {
				best = v
			}
		}
		return best, nil
	}
	return n
}
