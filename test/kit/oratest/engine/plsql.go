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

// runBlock runs a PL/SQL block.
func (s *session) runBlock(r *run, c *compiler, b plsqlBlock, names []string) error {
	vars := &source{}
	x := &blockRun{
		session: s, run: r, compiler: c.each(names), variables: vars,
		scope: &scope{sources: []*source{vars}},
		frame: &frame{run: r, rows: [][]value{make([]value, len(b.variables))}},
	}
	for i, v := range b.variables {
		vars.columns = append(vars.columns, sourceColumn{name: v.name, typ: v.typ, nullable: true, index: i})
		if v.def != nil {
			if err := x.assign(i, v.def); err != nil {
				return err
			}
		}
	}
	for _, st := range b.statements {
		if err := x.step(st); err != nil {
			return asRefusal(err)
		}
	}
	return nil
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

func (x *blockRun) step(st statement) error {
	switch st := st.(type) {
	case callStatement:
		return x.call(st.call)
	case assignStatement:
		_, i := x.scope.find([]token{st.name})
		if i < 0 {
			return refuse(6550, st.name.text)
		}
		return x.assign(i, st.x)
	case selectInto:
		return x.selectInto(st)
	}
	_, err := x.session.change(x.run, x.compiler, st, nil)
	return err
}

func (x *blockRun) assign(i int, value expr) error {
	if call, ok := value.(callExpr); ok && len(call.name) == 2 && call.name[1].text == "LOCAL_TRANSACTION_ID" {
		id, err := x.transactionID(len(call.args) > 0)
		x.frame.rows[0][i] = id
		return err
	}
	v, err := x.evaluate(value)
	if err != nil {
		return err
	}
	x.frame.rows[0][i], err = x.session.cast(v, x.variables.columns[i].typ, false, func() string { return x.variables.columns[i].name })
	return err
}

func (x *blockRun) evaluate(e expr) (value, error) {
	var n *node
	if err := protect(func() { n = x.compiler.value(x.scope, e) }); err != nil {
		return null, err
	}
	return n.eval(x.frame)
}

// transactionID is DBMS_TRANSACTION.LOCAL_TRANSACTION_ID, which may begin a
// transaction.
func (x *blockRun) transactionID(begin bool) (value, error) {
	s := x.session
	if s.tx != nil && s.tx.readOnly {
		return null, refuse(1456)
	}
	if begin {
		s.transaction().begin(s.engine.now())
	}
	if s.tx == nil || s.tx.begun.IsZero() {
		return null, nil
	}
	segment, slot, sequence := s.tx.xid()
	return text(fmt.Sprintf("%d.%d.%d", segment, slot, sequence)), nil
}

// xid is how V$TRANSACTION names a transaction.
func (t *transaction) xid() (segment, slot, sequence int) {
	return int(t.id%10 + 1), int(t.id % 33), int(t.id)
}

func (x *blockRun) selectInto(st selectInto) error {
	var q *compiledQuery
	if err := protect(func() { q = x.compiler.query(x.scope, st.query) }); err != nil {
		return err
	}
	if len(st.into) != len(q.columns) {
		return refuse(947)
	}
	x.run.view = x.session.view()
	in, err := q.open(x.run, x.frame)
	if err != nil {
		return err
	}
	defer in.close()
	row, err := in.next()
	if err != nil {
		return err
	}
	if row == nil {
		return refuse(1403)
	}
	for i, name := range st.into {
		_, at := x.scope.find([]token{name})
		if at < 0 {
			return refuse(6550, name.text)
		}
		x.frame.rows[0][at] = row[i]
	}
	if more, err := in.next(); more != nil || err != nil {
		return refuse(1422)
	}
	return nil
}

// call runs a procedure of a package.
func (x *blockRun) call(call callExpr) error {
	parts := call.name
	if len(parts) > 2 && parts[0].text == "SYS" {
		parts = parts[1:]
	}
	if len(parts) != 2 {
		return refuse(6550, parts[0].text)
	}
	e := x.session.engine
	e.mu.RLock()
	revoked := e.revoked[parts[0].text]
	e.mu.RUnlock()
	if revoked {
		return refuse(6550, parts[0].text)
	}
	args := map[string]string{}
	for i, a := range call.args {
		v, err := x.evaluate(a)
		if err != nil {
			return err
		}
		t, err := x.session.toText(v)
		if err != nil {
			return err
		}
		name := strconv.Itoa(i + 1)
		if i < len(call.names) && call.names[i] != "" {
			name = call.names[i]
		}
		args[name] = t
	}
	return x.session.packageCall(x.run, parts[0].text+"."+parts[1].text, args)
}
