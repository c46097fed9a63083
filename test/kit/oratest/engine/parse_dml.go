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
	p.expect(925, "INTO")
	ins.schema, ins.table = p.qualified(903)
	if p.isSymbol("(") {
		ins.columns = p.names()
	}
	if p.isWord("SELECT") {
		ins.query = p.query()
		return ins
	}
	p.expect(926, "VALUES")
	p.expectSymbol("(")
	ins.values = p.expressions()
	p.expectSymbol(")")
	return ins
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
	case "SET":
		p.expect(900, "TRANSACTION", "READ", "ONLY")
		t.verb = "READ ONLY"
	}
	return t
}
