package engine

import (
	"fmt"
	"slices"
	"strings"
)

// blockRun is the execution of a PL/SQL block.
type blockRun struct {
	session   *session
	run       *run
	compiler  *compiler
	variables []*variable
}

type variable struct {
	name  string
	typ   dataType
	value value
}

// runBlock runs a PL/SQL block.
func (s *session) runBlock(r *run, c *compiler, b plsqlBlock) {
	x := &blockRun{session: s, run: r, compiler: c}
	c.block = x
	for _, v := range b.variables {
		x.variables = append(x.variables, &variable{name: v.name, typ: v.typ})
	}
	for _, st := range b.statements {
		x.step(st)
	}
}

func (x *blockRun) step(st statement) {
	switch st := st.(type) {
	case callStatement:
		x.call(st.call)
	case assignStatement:
		x.assign(x.declared(st.name), st.x)
	case selectInto:
		x.selectInto(st)
	default:
		x.session.change(x.run, x.compiler, st)
	}
}

// variable finds a variable; nil for none.
func (x *blockRun) variable(name token) *variable {
	i := slices.IndexFunc(x.variables, func(v *variable) bool { return v.name == name.text })
	if i < 0 {
		return nil
	}
	return x.variables[i]
}

func (x *blockRun) declared(name token) *variable {
	v := x.variable(name)
	if v == nil {
		panic(refuse(6550, name.text))
	}
	return v
}

func (x *blockRun) assign(to *variable, from expr) {
	if call, ok := from.(callExpr); ok && call.path() == "DBMS_TRANSACTION.LOCAL_TRANSACTION_ID" {
		to.value = x.transactionID(len(call.args) > 0)
		return
	}
	to.value = x.session.cast(x.evaluate(from), to.typ, func() string { return to.name })
}

func (x *blockRun) evaluate(e expr) value { return x.compiler.evaluate(&frame{run: x.run}, e) }

// transactionID is DBMS_TRANSACTION.LOCAL_TRANSACTION_ID, which may begin a
// transaction.
func (x *blockRun) transactionID(begin bool) value {
	s := x.session
	if s.tx != nil && s.tx.readOnly {
		panic(refuse(1456))
	}
	if !begin {
		panic(unimplemented("LOCAL_TRANSACTION_ID without an argument"))
	}
	s.transaction().begin(s.engine.now())
	segment, slot, sequence := s.tx.xid()
	return text(fmt.Sprintf("%d.%d.%d", segment, slot, sequence))
}

// xid is how V$TRANSACTION names a transaction.
func (t *transaction) xid() (segment, slot, sequence int) {
	return int(t.id%10 + 1), int(t.id % 33), int(t.id)
}

func (x *blockRun) selectInto(st selectInto) {
	q := x.compiler.query(st.query)
	if len(st.into) != len(q.columns) {
		panic(refuse(947))
	}
	x.run.view = x.session.view()
	in := q.open(x.run)
	defer in.close()
	row := in.next()
	if row == nil {
		panic(refuse(1403))
	}
	for i, name := range st.into {
		x.declared(name).value = row[i]
	}
	if in.next() != nil {
		panic(refuse(1422))
	}
}

// call runs a procedure of a package.
func (x *blockRun) call(call callExpr) {
	e, name := x.session.engine, call.path()
	e.mu.RLock()
	revoked := e.revoked[call.name[0].text]
	e.mu.RUnlock()
	if revoked {
		panic(refuse(6550, name))
	}
	args := make([]string, len(call.args))
	for i, a := range call.args {
		args[i] = x.session.convert(x.evaluate(a), kindText).s
	}
	w := x.session.wire
	switch {
	case name == "DBMS_APPLICATION_INFO.SET_MODULE" && len(args) == 2:
		w.Module, w.Action = label(args[0]), label(args[1])
	case name == "DBMS_SESSION.SET_IDENTIFIER" && len(args) == 1:
		w.ClientID = label(args[0])
	case name == "DBMS_STATS.GATHER_TABLE_STATS" && len(args) == 2:
		x.session.analyze(strings.ToUpper(args[0]), strings.ToUpper(args[1]))
	default:
		panic(refuse(6550, name))
	}
}

// label is as much of a text as V$SESSION keeps.
func label(s string) string { return s[:min(len(s), 64)] }
