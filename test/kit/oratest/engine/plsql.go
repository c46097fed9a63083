package engine

import (
	"fmt"
	"strconv"
)

// blockRun is the execution of a PL/SQL block. Its variables are to the names
// of its statements like the row of an enclosing query.
type blockRun struct {
	session   *session
	run       *run
	compiler  *compiler
	scope     *scope
	frame     *frame
	variables *source
}

// runBlock runs a PL/SQL block, and refuses by a panic.
func (s *session) runBlock(r *run, c *compiler, b plsqlBlock, names []string) {
	vars := &source{}
	x := &blockRun{
		session: s, run: r, compiler: c.each(names), variables: vars,
		scope: &scope{sources: []*source{vars}},
		frame: &frame{run: r, rows: [][]value{make([]value, len(b.variables))}},
	}
	for i, v := range b.variables {
		vars.columns = append(vars.columns, sourceColumn{name: v.name, typ: v.typ, nullable: true, index: i})
		if v.def != nil {
			x.assign(i, v.def)
		}
	}
	for _, st := range b.statements {
		x.step(st)
	}
}

// each is a compiler with a value for each occurrence of a bind, where PL/SQL
// takes one for each name.
func (c *compiler) each(names []string) *compiler {
	block := *c
	block.binds, block.types = nil, nil
	for _, name := range names {
		for i, unique := range distinctNames(names) {
			if unique == name {
				block.binds, block.types = append(block.binds, c.binds[i]), append(block.types, c.types[i])
			}
		}
	}
	return &block
}

func (x *blockRun) step(st statement) {
	switch st := st.(type) {
	case callStatement:
		x.call(st.call)
	case assignStatement:
		_, i := x.scope.find([]token{st.name})
		if i < 0 {
			panic(refuse(6550, st.name.text))
		}
		x.assign(i, st.x)
	case selectInto:
		x.selectInto(st)
	default:
		if _, err := x.session.change(x.run, x.compiler, st, nil); err != nil {
			panic(asRefusal(err))
		}
	}
}

func (x *blockRun) assign(i int, value expr) {
	if call, ok := value.(callExpr); ok && len(call.name) == 2 && call.name[1].text == "LOCAL_TRANSACTION_ID" {
		x.frame.rows[0][i] = x.transactionID(len(call.args) > 0)
		return
	}
	column := x.variables.columns[i]
	x.frame.rows[0][i] = x.session.cast(x.evaluate(value), column.typ, false, func() string { return column.name })
}

func (x *blockRun) evaluate(e expr) value { return x.compiler.value(x.scope, e).eval(x.frame) }

// transactionID is DBMS_TRANSACTION.LOCAL_TRANSACTION_ID, which may begin a
// transaction.
func (x *blockRun) transactionID(begin bool) value {
	s := x.session
	if s.tx != nil && s.tx.readOnly {
		panic(refuse(1456))
	}
	if begin {
		s.transaction().begin(s.engine.now())
	}
	if s.tx == nil || s.tx.begun.IsZero() {
		return null
	}
	segment, slot, sequence := s.tx.xid()
	return text(fmt.Sprintf("%d.%d.%d", segment, slot, sequence))
}

// xid is how V$TRANSACTION names a transaction.
func (t *transaction) xid() (segment, slot, sequence int) {
	return int(t.id%10 + 1), int(t.id % 33), int(t.id)
}

func (x *blockRun) selectInto(st selectInto) {
	q := x.compiler.query(x.scope, st.query)
	if len(st.into) != len(q.columns) {
		panic(refuse(947))
	}
	x.run.view = x.session.view()
	in := q.open(x.run, x.frame)
	defer in.close()
	row := in.next()
	if row == nil {
		panic(refuse(1403))
	}
	for i, name := range st.into {
		_, at := x.scope.find([]token{name})
		if at < 0 {
			panic(refuse(6550, name.text))
		}
		x.frame.rows[0][at] = row[i]
	}
	if in.next() != nil {
		panic(refuse(1422))
	}
}

// call runs a procedure of a package.
func (x *blockRun) call(call callExpr) {
	parts := call.name
	if len(parts) > 2 && parts[0].text == "SYS" {
		parts = parts[1:]
	}
	if len(parts) != 2 {
		panic(refuse(6550, parts[0].text))
	}
	e := x.session.engine
	e.mu.RLock()
	revoked := e.revoked[parts[0].text]
	e.mu.RUnlock()
	if revoked {
		panic(refuse(6550, parts[0].text))
	}
	args := map[string]string{}
	for i, a := range call.args {
		name := strconv.Itoa(i + 1)
		if i < len(call.names) && call.names[i] != "" {
			name = call.names[i]
		}
		args[name] = x.session.toText(x.evaluate(a))
	}
	x.session.packageCall(x.run, parts[0].text+"."+parts[1].text, args)
}
