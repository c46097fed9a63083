package engine

// plsql reads [DECLARE variables] BEGIN statements END.
func (p *parser) plsql() statement {
	p.plsqlText = true
	var b plsqlBlock
	if p.word("DECLARE") {
		for !p.isWord("BEGIN") {
			v := columnDefinition{name: p.name(6550), typ: p.functionType()}
			p.precision()
			p.expectSymbol(";")
			b.variables = append(b.variables, v)
		}
	}
	p.expect(900, "BEGIN")
	for !p.word("END") {
		b.statements = append(b.statements, p.plsqlStatement())
		p.expectSymbol(";")
	}
	p.symbol(";")
	return b
}

// plsqlStatement reads one statement of a block.
func (p *parser) plsqlStatement() statement {
	switch {
	case p.peek().kind == tokenEnd:
		p.fail(6550, "end-of-file")
	case p.isWord("SELECT"):
		p.into = nil
		q := p.query()
		return selectInto{q, p.into}
	case p.isWord("COMMIT", "ROLLBACK", "SET"):
		return p.transaction()
	}
	name := []token{p.next()}
	for p.symbol(".") {
		name = append(name, p.next())
	}
	if len(name) == 1 && p.symbol(":=") {
		return assignStatement{name[0], p.expression()}
	}
	if p.isSymbol("(") {
		return callStatement{p.call(name).(callExpr)}
	}
	return callStatement{callExpr{name: name}}
}
