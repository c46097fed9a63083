package engine

import (
	"strings"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// name compiles a column, a pseudo-column or a function without arguments.
func (c *compiler) name(sc *scope, x nameExpr) *node {
	if s, i := sc.find(x.parts); s != nil {
		if g := sc.grouping; g != nil && !g.inside {
			g.refuse(x.parts[0].pos)
		}
		return s.node(i)
	}
	if c.block != nil && len(x.parts) == 1 {
		if v := c.block.variable(x.parts[0]); v != nil {
			return &node{typ: v.typ, nullable: true, eval: func(*frame) value { return v.value }}
		}
	}
	if n := c.pseudo(sc, x.parts); n != nil {
		return n
	}
	panic(invalid(x.parts))
}

// invalid is the refusal of a name that means nothing.
func invalid(parts []token) *wire.Error {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = `"` + p.text + `"`
	}
	return refuseAt(parts[len(parts)-1].pos, 904, strings.Join(names, "."))
}

// find looks a column up among the sources of one scope.
func (sc *scope) find(parts []token) (*source, int) {
	name := parts[len(parts)-1].text
	qualifier := parts[:len(parts)-1]
	var found *source
	at := -1
	for _, s := range sc.sources {
		if !s.matches(qualifier) {
			continue
		}
		for i, column := range s.columns {
			if column.name != name {
				continue
			}
			if found != nil {
				panic(refuseAt(parts[0].pos, 918))
			}
			found, at = s, i
		}
	}
	return found, at
}

func (s *source) matches(qualifier []token) bool {
	switch len(qualifier) {
	case 0:
		return true
	case 1:
		return s.alias == qualifier[0].text
	}
	return false
}

// node reads a column of a source.
func (s *source) node(i int) *node {
	if s.merged != nil {
		return s.merged[i]
	}
	column, slot := s.columns[i], s.slot
	return &node{
		typ: column.typ, nullable: column.nullable, slots: 1 << slot, column: &columnRef{slot, column.index},
		eval: func(f *frame) value { return cell(f.rows[slot], column.index) },
	}
}

// cell is a value of a row, NULL in a column that was added later.
func cell(row []value, i int) value {
	if i < len(row) {
		return row[i]
	}
	return null
}
