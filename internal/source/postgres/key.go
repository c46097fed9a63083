package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// orderID identifies an order of parts of the key.
func (p plan) orderID(parts []int) string {
	return p.selection.OrderID(parts, func(c source.Column) string { return p.relation.collations[c.Name] })
}

// composite is what pg_type.typtype has for rows.
const composite = "c"

// oneWays are the types of the server, and arrays of them, whose text it does not read
// back where it compares: rows have no operators of their own, and the others are names
// of the catalogue, which may change, and stand for several functions.
var oneWays = []uint32{
	pgtype.RecordOID, pgtype.RecordArrayOID,
	24, 1008, // regproc
	2202, 2207, // regprocedure
	2203, 2208, // regoper
	2204, 2209, // regoperator
	2205, 2210, // regclass
	2206, 2211, // regtype
	3734, 3735, // regconfig
	3769, 3770, // regdictionary
	4089, 4090, // regnamespace
	4096, 4097, // regrole
	4191, 4192, // regcollation
}

// readsBack reports whether a column of a type compares with the text of its values.
func readsBack(oid uint32) bool { return !slices.Contains(oneWays, oid) }

// keyOneWay returns the first column of the key from which no read goes on, with its
// type; empty for none.
func keyOneWay(r relation, s source.Selection) string {
	for _, i := range s.Key {
		if c := s.Columns[i]; slices.Contains(r.oneWay, c.Name) {
			return fmt.Sprintf("column %s of type %s", c.Name, c.Type)
		}
	}
	return ""
}

// keyOrder returns the parts of the key in the order of an index; nil for none.
// NULL comes behind all keys, where a read that goes on would leave it out, so there
// must be none. The index of a table has no rows of those that inherit from it.
func keyOrder(r relation, s source.Selection, indexes []index) []int {
	if s.KeyNullable() || r.inherited() || keyOneWay(r, s) != "" {
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
