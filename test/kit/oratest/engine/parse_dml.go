package engine

// change reads INSERT, UPDATE and DELETE.
func (p *parser) change() statement {
	switch {
	case p.word("INSERT"):
		return p.insert()
	case p.word("UPDATE"):
		u := updateStatement{from: p.target()}
		p.expect(971, "SET")
		for {
			a := assignment{pos: p.peek().pos}
			_, a.column = p.qualified(904)
			if !p.symbol("=") {
				p.fail(927)
			}
			a.x = p.expression()
			u.set = append(u.set, a)
			if !p.symbol(",") {
				break
			}
		}
		if p.word("WHERE") {
			u.cond = p.expression()
		}
		return u
	}
	p.next()
	p.word("FROM")
	d := deleteStatement{from: p.target()}
	if p.word("WHERE") {
		d.cond = p.expression()
	}
	return d
}

// target is the table of an UPDATE or DELETE.
func (p *parser) target() fromItem {
	f := fromItem{pos: p.peek().pos}
	f.schema, f.table = p.qualified(903)
	f.alias = f.table
	if isName(p.peek()) {
		f.alias = p.next().text
	}
	return f
}

func (p *parser) insert() statement {
	var ins insertStatement
	if p.word("ALL") {
		if !p.isWord("INTO") {
			p.fail(925)
		}
		for p.isWord("INTO") {
			ins.targets = append(ins.targets, p.insertTarget())
		}
		ins.query = p.query()
		return ins
	}
	t := p.insertTarget()
	if t.rows == nil {
		ins.query = p.query()
	}
	ins.targets = []insertTarget{t}
	return ins
}

func (p *parser) insertTarget() insertTarget {
	p.expect(925, "INTO")
	t := insertTarget{pos: p.peek().pos}
	t.schema, t.table = p.qualified(903)
	if isName(p.peek()) {
		p.next() // An alias.
	}
	if next := p.peekAt(1); p.isSymbol("(") && (next.kind != tokenWord || next.text != "SELECT") {
		t.columns = p.names()
	}
	if !p.word("VALUES") {
		if !p.isWord("SELECT", "WITH") && !p.isSymbol("(") {
			p.fail(926)
		}
		return t
	}
	for {
		p.expectSymbol("(")
		t.rows = append(t.rows, p.valueList())
		p.expectSymbol(")")
		// Only 23ai takes several rows.
		if p.version < 23 || !p.symbol(",") {
			return t
		}
	}
}

// valueList reads the values of a row, of which DEFAULT is nil.
func (p *parser) valueList() []expr {
	var all []expr
	for {
		if p.word("DEFAULT") {
			all = append(all, nil)
		} else {
			all = append(all, p.expression())
		}
		if !p.symbol(",") {
			return all
		}
	}
}

func (p *parser) explain() statement {
	p.next()
	p.expect(905, "PLAN")
	e := explainStatement{}
	if p.word("SET") {
		p.expect(905, "STATEMENT_ID")
		p.symbol("=")
		e.id = p.next().text
	}
	if p.word("INTO") {
		p.qualified(903)
	}
	p.expect(905, "FOR")
	e.inner = p.statement()
	return e
}

// transaction reads what begins and ends transactions.
func (p *parser) transaction() statement {
	t := transactionStatement{verb: p.next().text}
	switch t.verb {
	case "COMMIT", "ROLLBACK":
		p.word("WORK")
		if p.word("TO") {
			p.fail(3001)
		}
	case "SET":
		if p.word("ROLE") {
			p.i = len(p.tokens) - 1
			return noStatement{}
		}
		p.expect(922, "TRANSACTION")
		switch {
		case p.word("READ", "ONLY"):
			t.verb = "READ ONLY"
		case p.word("READ", "WRITE"):
			t.verb = "READ WRITE"
		case p.word("ISOLATION", "LEVEL", "SERIALIZABLE"):
			t.verb = "READ WRITE"
		case p.word("ISOLATION", "LEVEL", "READ", "COMMITTED"):
			t.verb = "READ WRITE"
		default:
			p.fail(900)
		}
		if p.word("NAME") {
			p.next()
		}
	case "LOCK", "SAVEPOINT":
		p.fail(3001)
	}
	return t
}
