package engine

func (p *parser) alter() statement {
	switch {
	case p.word("SESSION"):
		return p.alterSession()
	case p.word("TABLE"):
		return p.alterTable()
	}
	p.fail(940)
	return nil
}

func (p *parser) alterSession() statement {
	p.expect(2248, "SET")
	var a alterSession
	for p.peek().kind != tokenEnd {
		t := p.next()
		if t.kind != tokenWord || !p.symbol("=") {
			p.i--
			p.fail(2248)
		}
		v := p.next()
		if v.kind == tokenSymbol || v.kind == tokenEnd {
			p.i--
			p.fail(2248)
		}
		a.settings = append(a.settings, [2]string{t.text, v.text})
	}
	if len(a.settings) == 0 {
		p.fail(2248)
	}
	return a
}

func (p *parser) alterTable() statement {
	var a alterTable
	a.schema, a.name = p.qualified(903)
	switch {
	case p.word("ADD"):
		if p.isWord("COLUMN") {
			p.fail(904, "COLUMN")
		}
		a.add = p.columnDefinition()
	case p.word("DROP", "COLUMN"):
		a.drop = p.name(904)
	case p.word("RENAME", "COLUMN"):
		a.renameFrom = p.name(904)
		p.expect(905, "TO")
		a.renameTo = p.name(904)
	default:
		p.fail(1735)
	}
	return a
}

func (p *parser) drop() statement {
	if !p.isWord("TABLE", "VIEW", "SYNONYM", "FUNCTION") {
		p.fail(3001)
	}
	d := dropStatement{what: p.next().text}
	d.schema, d.name = p.qualified(903)
	p.rest()
	return d
}

// grant reads GRANT and REVOKE of privileges and roles.
func (p *parser) grant(revoke bool) statement {
	g := grantStatement{revoke: revoke}
	for {
		words := ""
		for !p.isSymbol(",") && !p.isWord("ON", "TO", "FROM") {
			t := p.next()
			if t.kind != tokenWord && t.kind != tokenQuoted {
				p.i--
				p.fail(990)
			}
			if words != "" {
				words += " "
			}
			words += t.text
		}
		g.privileges = append(g.privileges, words)
		if !p.symbol(",") {
			break
		}
	}
	if p.word("ON") {
		g.schema, g.object = p.qualified(903)
	}
	if revoke {
		p.expect(905, "FROM")
	} else {
		p.expect(905, "TO")
	}
	for {
		g.grantees = append(g.grantees, p.name(987))
		if !p.symbol(",") {
			break
		}
	}
	p.rest()
	return g
}
