package engine

// definition reads the statements that change the catalogue or the session.
func (p *parser) definition() statement {
	verb := p.next().text
	switch verb {
	case "CREATE":
		return p.create()
	case "ALTER":
		return p.alter()
	case "DROP":
		return p.drop()
	}
	return p.grant(verb == "REVOKE")
}

// rest skips what the engine has no use for: storage clauses and the like.
func (p *parser) rest() { p.i = len(p.tokens) - 1 }

func (p *parser) create() statement {
	replace := p.word("OR", "REPLACE")
	public := p.word("PUBLIC")
	switch {
	case p.word("TABLE"):
		return p.createTable()
	case p.word("MATERIALIZED", "VIEW"):
		var c createTable
		c.schema, c.name = p.qualified(903)
		p.expect(905, "AS")
		c.as = p.query()
		return c
	case p.word("UNIQUE", "INDEX"):
		return p.createIndex(true)
	case p.word("INDEX"):
		return p.createIndex(false)
	case p.word("BITMAP", "INDEX"):
		c := p.createIndex(false)
		c.storage.bitmap = true
		return c
	case p.word("VIEW"):
		return p.createView()
	case p.word("SYNONYM"):
		s := createSynonym{replace: replace}
		s.schema, s.name = p.qualified(995)
		if public {
			s.schema = "PUBLIC"
		}
		p.expect(905, "FOR")
		s.onSchema, s.on = p.qualified(903)
		if p.symbol("@") {
			s.link = p.name(1729)
		}
		return s
	case p.word("USER"):
		u := createUser{name: p.name(1935)}
		p.rest()
		return u
	case p.word("FUNCTION"):
		return p.createFunction()
	case p.isWord("PROFILE"):
		p.rest()
		return noStatement{}
	}
	p.fail(901)
	return nil
}

func (p *parser) createTable() createTable {
	var c createTable
	c.schema, c.name = p.qualified(903)
	p.expectSymbol("(")
	for {
		if p.isWord("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK") {
			c.constraints = append(c.constraints, p.constraint(""))
		} else {
			c.columns = append(c.columns, p.columnDefinition())
		}
		if !p.symbol(",") {
			break
		}
	}
	p.expectSymbol(")")
	c.byIndex = p.word("ORGANIZATION", "INDEX")
	if p.isWord("PARTITION") {
		p.rest()
	}
	return c
}

func (p *parser) columnDefinition() columnDefinition {
	c := columnDefinition{name: p.name(904), typ: p.dataType()}
	for {
		switch {
		case p.word("DEFAULT"):
			start := p.peek().pos
			c.def = p.additive()
			c.preset = p.sql[start:p.peek().pos]
		case p.word("NOT", "NULL"):
			c.notNull = true
		case p.isWord("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES"):
			c.constraints = append(c.constraints, p.constraint(c.name))
		default:
			return c
		}
	}
}

// constraint reads a constraint, which stands at a column or at none.
func (p *parser) constraint(column string) constraintDefinition {
	var c constraintDefinition
	if p.word("CONSTRAINT") {
		c.name = p.name(2250)
	}
	switch {
	case p.word("PRIMARY", "KEY"):
		c.primary = true
	case p.word("UNIQUE"):
	default:
		p.fail(904, "CONSTRAINT")
	}
	if column != "" {
		c.columns = []string{column}
	} else {
		c.columns = p.names()
	}
	return c
}

func (p *parser) createIndex(unique bool) createIndex {
	c := createIndex{unique: unique}
	c.schema, c.name = p.qualified(953)
	p.expect(969, "ON")
	c.tableSchema, c.table = p.qualified(903)
	p.expectSymbol("(")
	for {
		c.columns = append(c.columns, p.name(3001))
		descending := p.word("DESC")
		if !descending {
			p.word("ASC")
		}
		c.descending = append(c.descending, descending)
		if !p.symbol(",") {
			break
		}
	}
	p.expectSymbol(")")
	for p.peek().kind != tokenEnd {
		switch p.next().text {
		case "REVERSE":
			c.storage.reverse = true
		case "LOCAL":
			c.storage.local = true
		case "INVISIBLE":
			c.storage.invisible = true
		case "UNUSABLE":
			c.storage.unusable = true
		}
	}
	return c
}

func (p *parser) createView() statement {
	var c createView
	c.schema, c.name = p.qualified(903)
	p.expect(905, "AS")
	c.query = p.query()
	return c
}

// createFunction reads a function that changes rows and returns a value.
func (p *parser) createFunction() statement {
	var f createFunction
	_, f.name = p.qualified(904)
	p.expect(905, "RETURN")
	f.typ = p.functionType()
	p.expect(905, "IS", "BEGIN")
	p.change()
	p.expectSymbol(";")
	p.expect(905, "RETURN")
	p.rest()
	return f
}

// functionType reads the type of a result, which has no size.
func (p *parser) functionType() dataType {
	if p.word("VARCHAR2") {
		return plain(typeVarchar)
	}
	return p.dataType()
}
