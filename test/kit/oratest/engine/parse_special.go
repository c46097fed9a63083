package engine

import (
	"strings"
	"time"
)

// special reads the expressions that have a grammar of their own.
func (p *parser) special(t token) (expr, bool) {
	next := p.peekAt(1)
	switch t.text {
	case "NULL":
		p.next()
		return literalExpr{}, true
	case "CASE":
		p.next()
		return p.caseOf(), true
	case "CAST":
		if next.text == "(" {
			p.i += 2
			return p.cast(), true
		}
	case "DATE", "TIMESTAMP", "INTERVAL":
		if next.kind == tokenString {
			p.next()
			return p.timeLiteral(t, p.next()), true
		}
	}
	return nil, false
}

func (p *parser) caseOf() expr {
	var c caseExpr
	if !p.isWord("WHEN") {
		c.operand = p.expression()
	}
	for p.word("WHEN") {
		when := p.expression()
		p.expect(905, "THEN")
		c.whens = append(c.whens, [2]expr{when, p.expression()})
	}
	if p.word("ELSE") {
		c.other = p.expression()
	}
	p.expect(905, "END")
	return c
}

func (p *parser) cast() expr {
	x := p.expression()
	p.expect(905, "AS")
	typ := p.dataType()
	p.expectSymbol(")")
	return castExpr{x, typ}
}

// timeLiteral reads DATE '…', TIMESTAMP '…' and INTERVAL '…' DAY.
func (p *parser) timeLiteral(t, s token) expr {
	switch t.text {
	case "DATE":
		at, err := time.Parse(time.DateOnly, s.text)
		if err != nil {
			panic(refuseAt(s.pos, 1861))
		}
		return literalExpr{wall(kindDate, at), plain(typeDate)}
	case "INTERVAL":
		return literalExpr{p.intervalLiteral(s), plain(typeInterval)}
	}
	return timestampLiteral(s)
}

func timestampLiteral(s token) expr {
	stamp, zone := s.text, ""
	// A zone follows the time: an offset, or a region behind a blank.
	if i := strings.LastIndexAny(stamp, "+"); i > 10 {
		stamp, zone = stamp[:i], stamp[i:]
	} else if i := strings.LastIndexByte(stamp, '-'); i > 10 {
		stamp, zone = stamp[:i], stamp[i:]
	} else if i := strings.LastIndexByte(stamp, ' '); i > 10 {
		stamp, zone = stamp[:i], stamp[i+1:]
	}
	at, err := time.Parse("2006-01-02 15:04:05.999999999", strings.TrimSpace(stamp))
	if err != nil {
		panic(refuseAt(s.pos, 1861))
	}
	if zone == "" {
		return literalExpr{wall(kindTimestamp, at), plain(typeTimestamp)}
	}
	return literalExpr{inZone(at, zone), plain(typeTimestampTZ)}
}

// units are the lengths of the fields of an interval.
var units = map[string]time.Duration{
	"DAY": 24 * time.Hour, "HOUR": time.Hour, "MINUTE": time.Minute, "SECOND": time.Second,
}

func (p *parser) intervalLiteral(s token) value {
	field := p.next().text
	unit, ok := units[field]
	if !ok {
		panic(unimplemented("INTERVAL " + field))
	}
	p.precision()
	n, ok := parseNumber(s.text)
	if !ok {
		panic(refuseAt(s.pos, 1867))
	}
	return scaled(n, unit)
}

// scaled is n units as an interval, exact to the nanosecond, of less than three centuries.
func scaled(n value, unit time.Duration) value {
	nanos, _ := round(multiply(n, integer(int64(unit))), 0, false).int64()
	return interval(time.Duration(nanos))
}

// precision skips (n) or (n, m).
func (p *parser) precision() {
	if p.symbol("(") {
		p.expressions()
		p.expectSymbol(")")
	}
}
