package engine

import "strings"

// query reads a SELECT with its ORDER BY and FETCH FIRST.
func (p *parser) query() *query {
	q := &query{block: p.selectBlock()}
	if p.word("ORDER") {
		p.expect(924, "BY")
		q.order = p.orderItems()
	}
	// 11g does not have it.
	if p.version >= 12 && p.word("FETCH", "FIRST") {
		q.fetch = literalExpr{integer(1), plain(typeNumber)}
		if !p.isWord("ROW", "ROWS") {
			q.fetch = p.additive()
		}
		if !p.word("ROWS") {
			p.expect(905, "ROW")
		}
		p.expect(905, "ONLY")
	}
	if p.isWord("GROUP", "HAVING", "UNION", "INTERSECT", "MINUS", "FOR") {
		p.fail(3001)
	}
	return q
}

func (p *parser) selectBlock() *block {
	b := &block{}
	around := p.block
	p.block = b
	defer func() { p.block = around }()
	p.expect(900, "SELECT")
	if p.isWord("DISTINCT", "UNIQUE") {
		p.fail(3001)
	}
	for {
		b.items = append(b.items, p.selectItem())
		if !p.symbol(",") {
			break
		}
	}
	if p.plsqlText && p.into == nil && p.word("INTO") {
		for {
			p.into = append(p.into, p.next())
			if !p.symbol(",") {
				break
			}
		}
	}
	p.fromClause(b)
	if p.word("WHERE") {
		subqueries := b.subqueries // Those of the condition do not count.
		b.where = p.expression()
		b.subqueries = subqueries
	}
	return b
}

func (p *parser) fromClause(b *block) {
	if !p.word("FROM") {
		p.fail(923)
	}
	for {
		b.from = append(b.from, p.fromItem())
		if !p.symbol(",") {
			break
		}
	}
	if p.isWord(joinWords...) {
		p.fail(3001)
	}
}

func (p *parser) selectItem() selectItem {
	start := p.peek()
	if p.symbol("*") {
		return selectItem{x: starExpr{}}
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
var joinWords = []string{"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL"}

func (p *parser) fromItem() fromItem {
	f := fromItem{pos: p.peek().pos}
	switch {
	case p.symbol("("):
		f.sub = p.query()
		p.expectSymbol(")")
	default:
		f.schema, f.table = p.qualified(903)
		f.alias = f.table
	}
	if isName(p.peek()) && !p.isWord(joinWords...) && !p.isWord("FETCH", "OFFSET") {
		f.alias = p.next().text
	}
	return f
}

func (p *parser) orderItems() []orderItem {
	var all []orderItem
	for {
		o := orderItem{x: p.expression()}
		if p.word("DESC") {
			o.descending = true
		} else {
			p.word("ASC")
		}
		if p.isWord("NULLS") {
			p.fail(3001)
		}
		all = append(all, o)
		if !p.symbol(",") {
			return all
		}
	}
}
