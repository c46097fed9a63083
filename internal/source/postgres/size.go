package postgres

import (
	"cmp"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/source"
)

// size says how long the values of a column may be, and how that is found out.
type size uint8

const (
	sizeShort  size = iota // by the type
	sizeOctets             // the server knows the length without a look at the value
	sizeText               // the value has to be written as text
	sizeJSON               // the same, and white space in it does not count
)

// stored is how long a value may be as it is stored that is not written as text to
// find out how long that is. Compression makes it shorter by 255 times at most, so
// that a row may bring four times what it should. TOAST leaves most values alone that
// are not longer than the least.
func stored(most int) int {
	const part, least = 64, 2000
	return min(most, max(most/part, least))
}

// sizeOf takes a type with its length and modifier as pg_attribute has them.
func sizeOf(oid uint32, length, modifier int) size {
	const header, widest = 4, 4 // of the modifier; of a character
	switch oid {
	case pgtype.NumericOID, pgtype.InetOID, pgtype.CIDROID:
		return sizeShort // A numeric has 147,456 digits at most.
	case pgtype.TextOID, pgtype.ByteaOID:
		return sizeOctets
	case pgtype.VarcharOID, pgtype.BPCharOID:
		if modifier >= header && (modifier-header)*widest <= source.ShortValue {
			return sizeShort
		}
		return sizeOctets
	case pgtype.BitOID, pgtype.VarbitOID:
		if modifier > 0 && modifier <= source.ShortValue {
			return sizeShort
		}
	case pgtype.JSONOID, pgtype.JSONBOID:
		return sizeJSON
	}
	if length > 0 {
		return sizeShort
	}
	return sizeText
}

// fits writes the condition that a value is no longer than most, and its length. Both
// are called by their schema, like all that a statement adds to a query.
func (s size) fits(value string, most int) (fits, length string) {
	const octets = "pg_catalog.octet_length("
	switch s {
	case sizeShort:
		return "", ""
	case sizeOctets:
		return fmt.Sprintf("%s%s) OPERATOR(pg_catalog.<=) %d", octets, value, most), octets + value + ")::pg_catalog.int8"
	case sizeJSON:
		_, length = sizeText.fits(value, most)
		length += fmt.Sprintf(" OPERATOR(pg_catalog./) %d", source.WhiteSpace)
	default:
		length = octets + value + "::pg_catalog.text)::pg_catalog.int8"
	}
	return fmt.Sprintf("pg_catalog.pg_column_size(%s) OPERATOR(pg_catalog.<=) %d", value, stored(most)), length
}

// dialect is the [source.Dialect] of reads. The zero value looks at no lengths.
type dialect struct {
	source.Standard
	sizes map[string]size
	named bool // says that long columns have the alias l, see [relation.named]
	// schemas are those of the operators by which columns are compared; pg_catalog where
	// nothing is said. The types of a timestamp, and of a key that is gone on from, are the
	// server's own, and so are their operators.
	schemas map[string]string
}

func (d dialect) Column(c source.Column, qualified string) string {
	if !d.named || d.sizes[c.Name] == sizeShort {
		return qualified
	}
	return "l." + source.Quote(c.Name)
}

func (d dialect) Size(c source.Column, qualified string, most int) (fits, length string) {
	return d.sizes[c.Name].fits(d.Column(c, qualified), most)
}

func (d dialect) Operator(operator string, left source.Column) string {
	schema := d.schema(left)
	if schema != builtin {
		schema = source.Quote(schema)
	}
	return "OPERATOR(" + schema + "." + operator + ")"
}

const builtin = "pg_catalog"

func (d dialect) schema(c source.Column) string { return cmp.Or(d.schemas[c.Name], builtin) }

// named are the long columns of a view or a query. They may be expressions, such as
// subqueries, which the server would evaluate each time that they are named.
func (r relation) named(s source.Selection) (long []string) {
	if r.oid != "" && r.kind != view {
		return nil
	}
	for _, c := range s.Columns {
		if r.sizes[c.Name] != sizeShort {
			long = append(long, "q."+source.Quote(c.Name))
		}
	}
	return long
}
