package engine

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
	name := x.path()
	if aggregates[name] {
		return c.aggregate(sc, x)
	}
	f, ok := functions[name]
	if !ok {
		panic(invalid(x.name))
	}
	args := c.values(sc, x.args)
	if len(args) < f.least || len(args) > f.most {
		panic(refuseAt(x.name[0].pos, 909))
	}
	return f.make(c, args)
}

// routine compiles the call of a function that a test has created: its change of rows is
// refused.
func (c *compiler) routine(name string) *node {
	o := c.session.engine.find(c.user, "", name)
	if o == nil || o.routine == nil {
		return nil
	}
	s := c.session
	return &node{typ: o.routine.typ, nullable: true, rownum: true, eval: func(*frame) value {
		if s.tx != nil && s.tx.readOnly {
			panic(refuse(1456))
		}
		panic(refuse(14551))
	}}
}

// simple is a function of values that is NULL where one of them is.
func simple(typ dataType, kinds []kind, f func(s *session, v []value) value) func(*compiler, []*node) *node {
	return func(c *compiler, args []*node) *node {
		s := c.session
		n := &node{typ: typ, nullable: true}
		for i, a := range args {
			args[i] = c.to(a, kinds[min(i, len(kinds)-1)])
		}
		n.eval = func(fr *frame) value {
			v := make([]value, len(args))
			for i, a := range args {
				if v[i] = a.eval(fr); v[i].isNull() {
					return null
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
	"DECODE":   {3, 255, decode},
	"SYS_CONTEXT": {2, 3, simple(varchar(256), []kind{kindText}, func(s *session, v []value) value {
		return s.userenv(v[0].s, v[1].s)
	})},
}

func coalesce(c *compiler, args []*node) *node {
	args, typ := c.unify(args)
	n := (&node{typ: typ, nullable: true}).inherit(args...)
	for _, a := range args {
		n.nullable = n.nullable && a.nullable
	}
	n.eval = func(f *frame) value {
		for _, a := range args {
			if v := a.eval(f); !v.isNull() {
				return v
			}
		}
		return null
	}
	return n
}

func decode(c *compiler, args []*node) *node {
	var equals, results []*node
	i := 1
	for ; i+1 < len(args); i += 2 {
		equals = append(equals, c.comparison("=", args[0], args[i]))
		results = append(results, args[i+1])
	}
	return c.firstOf(equals, append(results, args[i:]...))
}
