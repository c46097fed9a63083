package engine

import "strings"

// query reads a SELECT with its WITH, UNION ALL, ORDER BY and FETCH FIRST.
func (p *parser) query() *query {
	q := &query{}
	if p.word("WITH") {
		q.with = p.withClauses()
	}
	p.blocks(q)
	if p.word("ORDER") {
		p.word("SIBLINGS")
		p.expect(924, "BY")
		q.order = p.orderItems()
	}
	p.rowLimit(q)
	if p.word("FOR", "UPDATE") {
		q.forUpdate = true
		if p.word("OF") {
			p.expressions()
		}
		if !p.word("NOWAIT") && !p.word("SKIP", "LOCKED") && p.word("WAIT") {
			p.expression()
		}
	}
	return q
}

func (p *parser) withClauses() []withClause {
	var all []withClause
	for {
		name := p.name(999)
		p.expect(905, "AS")
		p.expectSymbol("(")
		all = append(all, withClause{name, p.query()})
		p.expectSymbol(")")
		if !p.symbol(",") {
			return all
		}
	}
}

func (p *parser) blocks(q *query) {
	for {
		if p.isSymbol("(") {
			p.next()
			inner := p.query()
			p.expectSymbol(")")
			// ORDER BY inside of the parentheses has no effect on a union.
			q.blocks = append(q.blocks, inner.blocks...)
			q.distinct = q.distinct || inner.distinct
		} else {
			q.blocks = append(q.blocks, p.selectBlock())
		}
		if !p.word("UNION") {
			return
		}
		if !p.word("ALL") {
			q.distinct = true
		}
	}
}

// rowLimit reads OFFSET n ROWS FETCH FIRST n ROWS ONLY, which 11g does not have.
func (p *parser) rowLimit(q *query) {
	if p.version < 12 {
		return
	}
	if p.word("OFFSET") {
		q.offset = p.additive()
		if !p.word("ROWS") {
			p.expect(905, "ROW")
		}
	}
	if !p.word("FETCH") {
		return
	}
	if !p.word("FIRST") {
		p.expect(905, "NEXT")
	}
	q.fetch = literalExpr{integer(1), plain(typeNumber)}
	if !p.isWord("ROW", "ROWS") {
		q.fetch = p.additive()
	}
	if !p.word("ROWS") {
		p.expect(905, "ROW")
	}
	p.expect(905, "ONLY")
}

func (p *parser) selectBlock() *block {
	b := &block{pos: p.peek().pos}
	p.expect(900, "SELECT")
	if p.word("DISTINCT") || p.word("UNIQUE") {
		b.distinct = true
	} else {
		p.word("ALL")
	}
	for {
		b.items = append(b.items, p.selectItem())
		if !p.symbol(",") {
			break
		}
	}
	if p.block && p.into == nil && p.word("INTO") {
		for {
			p.into = append(p.into, p.next())
			if !p.symbol(",") {
				break
			}
		}
	}
	p.fromClause(b)
	if p.word("WHERE") {
		b.where = p.expression()
	}
	if p.word("GROUP") {
		p.expect(924, "BY")
		b.group = p.expressions()
	}
	if p.word("HAVING") {
		b.having = p.expression()
	}
	return b
}

func (p *parser) fromClause(b *block) {
	if !p.word("FROM") {
		if p.version < 23 || p.peek().kind != tokenEnd && !p.isSymbol(")") && !p.isWord("UNION", "ORDER", "WHERE") {
			p.fail(923)
		}
		b.from = []fromItem{{table: "DUAL"}}
		return
	}
	b.from = append(b.from, p.fromItem())
	for {
		switch {
		case p.symbol(","):
			b.from = append(b.from, p.fromItem())
		case p.word("CROSS", "JOIN"):
			b.from = append(b.from, p.fromItem())
		case p.word("JOIN"), p.word("INNER", "JOIN"):
			b.from = append(b.from, p.joined(false))
		case p.word("LEFT", "JOIN"), p.word("LEFT", "OUTER", "JOIN"):
			b.from = append(b.from, p.joined(true))
		case p.isWord("RIGHT", "FULL", "NATURAL"):
			p.fail(3001)
		default:
			return
		}
	}
}

func (p *parser) joined(outer bool) fromItem {
	f := p.fromItem()
	if p.isWord("USING") {
		p.fail(3001)
	}
	p.expect(905, "ON")
	f.on, f.outer = p.expression(), outer
	return f
}

func (p *parser) selectItem() selectItem {
	start := p.peek()
	if p.symbol("*") {
		return selectItem{x: starExpr{}}
	}
	// q.* and schema.q.*
	for n := 0; isName(p.peekAt(n)) && p.peekAt(n+1).text == "." && p.peekAt(n+1).kind == tokenSymbol; n += 2 {
		if star := p.peekAt(n + 2); star.kind == tokenSymbol && star.text == "*" {
			var qualifier []token
			for k := 0; k <= n; k += 2 {
				qualifier = append(qualifier, p.peekAt(k))
			}
			p.i += n + 3
			return selectItem{x: starExpr{qualifier}}
		}
	}
	item := selectItem{x: p.expression()}
	item.heading = heading(p.sql[start.pos:p.tokens[p.i-1].end])
	switch {
	case p.word("AS"):
		item.alias = p.name(923)
	case isName(p.peek()):
		item.alias = p.next().text
	}
	return item
}

// heading is the name of a column without an alias: its text without blanks, in
// capitals, as far as it fits.
func heading(sql string) string {
	s := strings.ToUpper(strings.Join(strings.Fields(sql), ""))
	return s[:min(len(s), 30)]
}

// joinWords follow a table where an alias could stand, but are not reserved.
var joinWords = []string{"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "FETCH", "OFFSET", "USING"}

func (p *parser) fromItem() fromItem {
	f := fromItem{pos: p.peek().pos}
	switch {
	case p.symbol("("):
		f.sub = p.query()
		p.expectSymbol(")")
	case p.word("TABLE"):
		p.expectSymbol("(")
		f.function = p.expression()
		p.expectSymbol(")")
	default:
		f.schema, f.table = p.qualified(903)
		f.alias = f.table
	}
	if isName(p.peek()) && !p.isWord(joinWords...) {
		f.alias = p.next().text
	}
	return f
}

func (p *parser) orderItems() []orderItem {
	var all []orderItem
	for {
		o := orderItem{x: p.expression()}
		if p.word("DESC") {
			o.descending, o.nullsFirst = true, true
		} else {
			p.word("ASC")
		}
		switch {
		case p.word("NULLS", "FIRST"):
			o.nullsFirst = true
		case p.word("NULLS", "LAST"):
			o.nullsFirst = false
		}
		all = append(all, o)
		if !p.symbol(",") {
			return all
		}
	}
}
