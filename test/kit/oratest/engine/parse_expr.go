package engine

// expression reads a condition or a value; which of them it is, is found out
// when it is compiled.
func (p *parser) expression() expr {
	x := p.conjunction()
	for p.word("OR") {
		x = binaryExpr{"OR", x, p.conjunction()}
	}
	return x
}

func (p *parser) expressions() []expr {
	var all []expr
	for {
		all = append(all, p.expression())
		if !p.symbol(",") {
			return all
		}
	}
}

func (p *parser) conjunction() expr {
	x := p.predicate()
	for p.word("AND") {
		x = binaryExpr{"AND", x, p.predicate()}
	}
	return x
}

// predicate reads a value and what is said about it.
func (p *parser) predicate() expr {
	x := p.additive()
	for _, op := range []string{"=", "<>", "!=", "^=", "<=", ">=", "<", ">"} {
		if p.symbol(op) {
			if op == "!=" || op == "^=" {
				op = "<>"
			}
			return binaryExpr{op, x, p.additive()}
		}
	}
	if p.word("IS") {
		not := p.word("NOT")
		if !p.word("NULL") {
			p.fail(908)
		}
		return nullExpr{x, not}
	}
	switch {
	case p.word("IN"):
		return p.in(x)
	case p.word("BETWEEN"):
		low := p.additive()
		p.expect(905, "AND")
		return binaryExpr{"AND", binaryExpr{">=", x, low}, binaryExpr{"<=", x, p.additive()}}
	case p.isWord("LIKE", "NOT"):
		p.fail(3001)
	}
	return x
}

func (p *parser) in(x expr) expr {
	p.expectSymbol("(")
	in := inExpr{x: x}
	if p.isWord("SELECT") {
		in.sub = p.subquery()
	} else {
		in.list = p.expressions()
	}
	p.expectSymbol(")")
	return in
}

// subquery reads a SELECT within an expression.
func (p *parser) subquery() *query {
	if p.block != nil {
		p.block.subqueries = true
	}
	return p.query()
}

func (p *parser) additive() expr {
	x := p.multiplicative()
	for {
		switch {
		case p.symbol("+"):
			x = binaryExpr{"+", x, p.multiplicative()}
		case p.symbol("-"):
			x = binaryExpr{"-", x, p.multiplicative()}
		case p.symbol("||"):
			x = binaryExpr{"||", x, p.multiplicative()}
		default:
			return x
		}
	}
}

func (p *parser) multiplicative() expr {
	x := p.unary()
	for {
		switch {
		case p.symbol("*"):
			x = binaryExpr{"*", x, p.unary()}
		case p.symbol("/"):
			x = binaryExpr{"/", x, p.unary()}
		default:
			return x
		}
	}
}

func (p *parser) unary() expr {
	if p.symbol("-") {
		return negationExpr{p.unary()}
	}
	x := p.primary()
	for p.word("AT") {
		p.expect(905, "TIME", "ZONE")
		x = zoneExpr{x: x, zone: p.primary()}
	}
	return x
}

func (p *parser) primary() expr {
	t := p.peek()
	switch t.kind {
	case tokenNumber:
		p.next()
		n, ok := parseNumber(t.text)
		if !ok {
			panic(refuseAt(t.pos, 1722))
		}
		return literalExpr{n, plain(typeNumber)}
	case tokenString:
		if len(t.text) > 4000 {
			p.fail(1704)
		}
		p.next()
		return literalExpr{text(t.text), dataType{name: typeChar, size: max(len(t.text), 1)}}
	case tokenBind:
		p.next()
		p.binds++
		return bindExpr{p.binds - 1}
	case tokenSymbol:
		if t.text == "(" {
			return p.parenthesis()
		}
	case tokenWord, tokenQuoted:
		return p.named(t)
	}
	p.fail(936)
	return nil
}

func (p *parser) parenthesis() expr {
	p.next()
	if p.isWord("SELECT") {
		sub := p.subquery()
		p.expectSymbol(")")
		return subqueryExpr{sub}
	}
	x := p.expression()
	p.expectSymbol(")")
	return x
}

// named reads what begins with a word.
func (p *parser) named(t token) expr {
	if t.kind == tokenWord {
		if x, ok := p.special(t); ok {
			return x
		}
		switch t.text {
		case "ROWNUM":
			if p.block != nil {
				p.block.rownum = true
			}
		case "SYSDATE":
		default:
			if reserved[t.text] {
				p.fail(936)
			}
		}
	}
	name := []token{p.next()}
	for p.symbol(".") {
		if !isName(p.peek()) {
			p.fail(1747)
		}
		name = append(name, p.next())
	}
	if p.isSymbol("(") {
		return p.call(name)
	}
	return nameExpr{name}
}

func (p *parser) call(name []token) expr {
	p.next()
	c := callExpr{name: name}
	if p.block != nil && aggregates[name[0].text] {
		p.block.grouped = true
	}
	if p.symbol("*") {
		c.args = []expr{starExpr{}}
	} else if !p.isSymbol(")") {
		c.args = p.expressions()
	}
	p.expectSymbol(")")
	if p.isWord("OVER") {
		p.fail(3001)
	}
	return c
}
