package engine

import (
	"slices"
	"strings"
)

// parser reads one statement by recursive descent.
type parser struct {
	sql     string
	tokens  []token
	i       int
	version int
	binds   int // the occurrences of placeholders
	// block is the SELECT that is being read.
	block *block
	// plsqlText says that a SELECT may have an INTO.
	plsqlText bool
	into      []token
}

// parse reads a statement as the version of the database would, and counts its
// placeholders.
func parse(sql string, version int) (st statement, binds int) {
	p := &parser{sql: sql, version: version}
	l := lexer{sql: sql, maxName: 128, semicolon: 933}
	if version < 12 {
		l.maxName, l.semicolon = 30, 911
	}
	if isBlock(sql) {
		l.semicolon = 0
	}
	p.tokens = l.run()
	st = p.statement()
	if p.peek().kind != tokenEnd {
		p.fail(933)
	}
	return st, p.binds
}

// isBlock tells PL/SQL, where semicolons belong, from SQL.
func isBlock(sql string) bool {
	words := strings.Fields(strings.ToUpper(sql[:min(len(sql), 200)]))
	words = words[:min(4, len(words))]
	return slices.Contains(words, "BEGIN") || slices.Contains(words, "DECLARE") || slices.Contains(words, "FUNCTION")
}

// fail refuses the statement at the present token, which is named where the engine does not
// do it.
func (p *parser) fail(code int, args ...any) {
	if code == 3001 {
		args = []any{p.peek().text}
	}
	panic(refuseAt(p.peek().pos, code, args...))
}

func (p *parser) peek() token { return p.tokens[p.i] }

func (p *parser) peekAt(n int) token {
	return p.tokens[min(p.i+n, len(p.tokens)-1)]
}

func (p *parser) next() token {
	t := p.tokens[p.i]
	if t.kind != tokenEnd {
		p.i++
	}
	return t
}

// word takes the words if they follow.
func (p *parser) word(words ...string) bool {
	for n, w := range words {
		if t := p.peekAt(n); t.kind != tokenWord || t.text != w {
			return false
		}
	}
	p.i += len(words)
	return true
}

func (p *parser) isWord(words ...string) bool {
	t := p.peek()
	return t.kind == tokenWord && slices.Contains(words, t.text)
}

// expect takes a word or refuses the statement.
func (p *parser) expect(code int, words ...string) {
	for _, w := range words {
		if !p.word(w) {
			p.fail(code)
		}
	}
}

func (p *parser) symbol(s string) bool {
	if t := p.peek(); t.kind != tokenSymbol || t.text != s {
		return false
	}
	p.i++
	return true
}

func (p *parser) isSymbol(s string) bool {
	t := p.peek()
	return t.kind == tokenSymbol && t.text == s
}

func (p *parser) expectSymbol(s string) {
	if p.symbol(s) {
		return
	}
	switch s {
	case "(":
		p.fail(906)
	case ")":
		p.fail(907)
	}
	p.fail(933)
}

// reserved are the words that cannot name anything without quotes.
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`ACCESS ADD ALL ALTER AND ANY AS ASC AUDIT BETWEEN BY CHAR CHECK CLUSTER COLUMN COMMENT
		COMPRESS CONNECT CREATE CURRENT DATE DECIMAL DEFAULT DELETE DESC DISTINCT DROP ELSE EXCLUSIVE EXISTS FILE FLOAT FOR
		FROM GRANT GROUP HAVING IDENTIFIED IMMEDIATE IN INCREMENT INDEX INITIAL INSERT INTEGER INTERSECT INTO IS LEVEL LIKE
		LOCK LONG MAXEXTENTS MINUS MLSLABEL MODE MODIFY NOAUDIT NOCOMPRESS NOT NOWAIT NULL NUMBER OF OFFLINE ON ONLINE
		OPTION OR ORDER PCTFREE PRIOR PUBLIC RAW RENAME RESOURCE REVOKE ROW ROWID ROWNUM ROWS SELECT SESSION SET SHARE
		SIZE SMALLINT START SUCCESSFUL SYNONYM SYSDATE TABLE THEN TO TRIGGER UID UNION UNIQUE UPDATE USER VALIDATE VALUES
		VARCHAR VARCHAR2 VIEW WHENEVER WHERE WITH`) {
		m[w] = true
	}
	return m
}()

// isName says whether a token can name something.
func isName(t token) bool {
	return t.kind == tokenQuoted || t.kind == tokenWord && !reserved[t.text]
}

// name takes an identifier, or refuses with the code.
func (p *parser) name(code int) string {
	if t := p.peek(); !isName(t) {
		p.fail(code)
	}
	return p.next().text
}

// qualified takes name or schema.name.
func (p *parser) qualified(code int) (schema, name string) {
	name = p.name(code)
	if p.symbol(".") {
		return name, p.name(code)
	}
	return "", name
}

// names takes ( name, … ).
func (p *parser) names() []string {
	p.expectSymbol("(")
	var all []string
	for {
		all = append(all, p.name(904))
		if !p.symbol(",") {
			break
		}
	}
	p.expectSymbol(")")
	return all
}

func (p *parser) statement() statement {
	t := p.peek()
	if t.kind != tokenWord {
		p.fail(900)
	}
	switch t.text {
	case "SELECT":
		return selectStatement{p.query()}
	case "INSERT", "UPDATE", "DELETE":
		return p.change()
	case "CREATE", "ALTER", "DROP", "GRANT", "REVOKE":
		return p.definition()
	case "BEGIN", "DECLARE":
		return p.plsql()
	case "EXPLAIN":
		return p.explain()
	case "COMMIT", "ROLLBACK", "SET":
		return p.transaction()
	}
	p.fail(900)
	return nil
}
