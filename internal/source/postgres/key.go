package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// orderID identifies an order of parts of the key.
func (p plan) orderID(parts []int) string {
	return p.selection.OrderID(parts, func(c source.Column) string { return p.relation.collations[c.Name] })
}

// orderOf identifies the order in which a read of that range goes on from a key.
func (p plan) orderOf(in observer.Range) string {
	if in.ByKey {
		return p.orderID(p.order)
	}
	return p.ties
}

// keyOrder returns the parts of the key in the order of an index; nil for none.
// NULL comes behind all keys, where a read that goes on would leave it out, so there
// must be none. The index of a table has no rows of those that inherit from it.
func keyOrder(r relation, s source.Selection, indexes []index) []int {
	if s.KeyNullable() || r.inherited() {
		return nil
	}
	var plain [][]string
	for _, i := range indexes {
		if i.whole && i.plain {
			plain = append(plain, i.columns)
		}
	}
	return s.KeyOrder(plain)
}

// keyOperators returns the schema of the operators by which an index orders a column.
// They are named by it, as the path may find none, or others that do not fit the
// order: text's for citext, where the path has not the schema of that extension.
func keyOperators(indexes []index) map[string]string {
	schemas := make(map[string]string)
	for _, i := range indexes {
		if !i.plain {
			continue
		}
		for n, column := range i.columns {
			schemas[column] = i.schemas[n]
		}
	}
	return schemas
}

func operatorOf(schema, operator string) string {
	if schema != "pg_catalog" {
		schema = source.Quote(schema)
	}
	return "OPERATOR(" + schema + "." + operator + ")"
}

const anyWidth = "any "

// isBound reports whether a width is a declared one. That of a domain is not looked up,
// and an expression has none.
func isBound(width string) bool { return !strings.HasPrefix(width, anyWidth) }

// keyRule returns the rule of a type, and what its modifier, as pg_attribute has it, says
// about the text of its values. Times have no zeros at the end here.
func keyRule(oid uint32, modifier int) (rule observer.KeyRule, width string) {
	const header = 4
	switch oid {
	case pgtype.NumericOID:
		if modifier < header {
			return observer.KeyZeros, anyWidth + "scale"
		}
		const bits, sign = 1<<11 - 1, 1 << 10
		return observer.KeyZeros, fmt.Sprintf("scale %d", (modifier-header)&bits^sign-sign)
	case pgtype.BPCharOID:
		if modifier < header {
			return observer.KeyBlanks, anyWidth + "length"
		}
		return observer.KeyBlanks, fmt.Sprintf("length %d", modifier-header)
	}
	return "", ""
}
